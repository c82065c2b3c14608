"""What an accepted run without a result has become (`behaviour.md`, Lost)."""

from dataclasses import dataclass
from enum import Enum, auto

from jobwheel.admin.domain.group import Registration
from jobwheel.admin.engine.executor_client import Statuses
from jobwheel.admin.engine.rules import IDLE_ANSWERS, SILENT_MS, UNHEARD_END_MS
from jobwheel.admin.store.checks import OpenRun
from jobwheel.wire.messages import RunStatus


class Verdict(Enum):
    """What becomes of the run. All but the first two are: it is lost."""

    HEARD = auto()
    WAITS = auto()
    UNKNOWN = auto()
    """The process that took it does not know it any more."""
    REPLACED = auto()
    """Another process has the address, and no result of it."""
    GONE = auto()
    """Nobody is there."""
    IDLE = auto()
    """The executor called its job idle too often."""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What is known of the address that a run was sent to.

    Attributes:
        silent_ms: since when nothing was heard of the run.
        is_fixed: whether the address is one of a list, where nobody beats.
        there: who beat there within the last `SILENT_MS`.
        may_judge: whether this node has been there long enough to take silence for an answer.
    """

    silent_ms: int
    is_fixed: bool
    there: Registration | None
    may_judge: bool


def judge_ours(run: OpenRun, answer: Statuses | None, where: Whereabouts) -> Verdict:
    """What becomes of a run that an executor of ours took, by what it answered (None: nothing readable)."""
    status = None if answer is None else answer.by_run.get(run.id)
    if status is None or answer is None:
        return _unanswered(run, where)
    if status is not RunStatus.UNKNOWN:
        return Verdict.HEARD
    if answer.instance_id == run.instance_id:
        return Verdict.UNKNOWN
    if where.there is None:
        # It has looked into its spool for the answer.
        return Verdict.REPLACED
    is_told = where.there.instance_id == answer.instance_id
    return Verdict.REPLACED if is_told and not _spools(where.there) else Verdict.WAITS


def _unanswered(run: OpenRun, where: Whereabouts) -> Verdict:
    if not where.may_judge or where.silent_ms < SILENT_MS:
        return Verdict.WAITS
    if where.is_fixed:
        return Verdict.GONE if where.silent_ms >= UNHEARD_END_MS else Verdict.WAITS
    if where.there is None:
        return Verdict.GONE
    is_replaced = where.there.instance_id != run.instance_id and not _spools(where.there)
    return Verdict.REPLACED if is_replaced else Verdict.WAITS


def judge_other(run: OpenRun, idle: bool | None, where: Whereabouts) -> Verdict:  # noqa: FBT001 - the answer itself
    """What becomes of a run that another make of executor took, by whether it is idle (None: no readable answer)."""
    if idle is not None:
        return Verdict.IDLE if idle and run.idle_answers + 1 >= IDLE_ANSWERS else Verdict.HEARD
    # Of an address that never beats one question in vain says little: it is asked a few times.
    patience_ms = UNHEARD_END_MS + SILENT_MS if where.is_fixed else UNHEARD_END_MS
    is_gone = where.may_judge and where.there is None and where.silent_ms >= patience_ms
    return Verdict.GONE if is_gone else Verdict.WAITS


def _spools(there: Registration) -> bool:
    return there.load is not None and there.load.spooled > 0
