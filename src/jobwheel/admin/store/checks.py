"""Runs that somebody must look after: those that may not have arrived, those without a result, those to be killed.

Each has in `check_ms` when it is looked at next, by the database's clock; any node takes it by moving that on.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Row, func, select, update

from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.run import Phase, Shard, TriggerType
from jobwheel.admin.domain.writes import TakeOff, cut_message
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.dialects.base import PRIMARY_KEY
from jobwheel.admin.store.tables import job_log

_LOOKED_AFTER = (Phase.PENDING, Phase.UNCONFIRMED, Phase.ACCEPTED)


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run as the recovery looks at it: unconfirmed, accepted, or pending and to be killed.

    Times are epoch milliseconds. `unheard_ms`: since when nothing was heard; None on a row that somebody else wrote.
    """

    id: RunId
    job_id: JobId
    group_id: GroupId
    trigger_type: TriggerType
    planned_ms: int
    triggered_ms: int
    parameter: str
    attempt: int
    address: str
    handler: str
    instance_id: str | None
    phase: Phase
    unheard_ms: int | None
    check_ms: int
    kill_ms: int | None
    idle_answers: int
    is_named: bool
    shard: Shard | None
    parent_run_id: RunId | None = None


def due_checks(connection: Connection, now_ms: int, most: int) -> list[OpenRun]:
    """Runs that are to be looked at now, those first that have waited longest."""
    # The call keeps the database from looking the phase up in an index: few of all open runs are due.
    phase = func.coalesce(job_log.c.phase, "")
    query = (
        select(job_log)
        .where(job_log.c.check_ms <= now_ms, phase.in_(_LOOKED_AFTER))
        .order_by(job_log.c.check_ms)
        .limit(most)
    )
    query = statements(connection).by_index(query, job_log, "jobwheel_log_check")
    return [_open_run(row) for row in connection.execute(query)]


def _open_run(row: Row[tuple[object, ...]]) -> OpenRun:
    return OpenRun(
        id=RunId(row.id),
        job_id=JobId(row.job_id),
        group_id=GroupId(row.job_group),
        trigger_type=TriggerType(row.trigger_type),
        planned_ms=row.planned_ms,
        triggered_ms=row.triggered_ms,
        parameter=row.executor_param or "",
        attempt=row.attempt,
        address=row.executor_address or "",
        handler=row.executor_handler or "",
        instance_id=row.instance_id,
        phase=Phase(row.phase),
        unheard_ms=row.unheard_ms,
        check_ms=row.check_ms,
        kill_ms=row.kill_ms,
        idle_answers=row.idle_answers,
        is_named=bool(row.named_addresses),
        shard=Shard.parse(row.executor_sharding_param),
        parent_run_id=None if row.parent_run_id is None else RunId(row.parent_run_id),
    )


@dataclass(frozen=True, slots=True)
class CheckLater:
    """Moves a run's next look on; whoever moves it first does the look."""

    run_id: RunId
    read_check_ms: int
    check_ms: int


def check_later(connection: Connection, moves: Sequence[CheckLater]) -> set[RunId]:
    """Take these runs to be looked at now; return those that no other node took first."""
    read = {move.run_id: move.read_check_ms for move in moves}
    # Not every database can say what an UPDATE changed: the rows are held first, in the order of their ids.
    held = (
        select(job_log.c.id, job_log.c.check_ms)
        .where(job_log.c.id.in_(list(read)), func.coalesce(job_log.c.phase, "").in_(_LOOKED_AFTER))
        .order_by(job_log.c.id)
        .with_for_update()
    )
    rows = connection.execute(statements(connection).by_index(held, job_log, PRIMARY_KEY)).all()
    taken = {RunId(row.id) for row in rows if row.check_ms == read[row.id]}
    later = defaultdict[int, list[RunId]](list)
    for move in moves:
        if move.run_id in taken:
            later[move.check_ms].append(move.run_id)
    for check_ms, run_ids in later.items():
        connection.execute(update(job_log).where(job_log.c.id.in_(run_ids)).values(check_ms=check_ms))
    return taken


def move_unconfirmed(connection: Connection, run: TakeOff, from_address: str, since_ms: int, check_ms: int) -> bool:
    """Give an unconfirmed run that certainly did not arrive another address; only if True may it be sent there."""
    moved = connection.execute(
        update(job_log)
        .where(
            job_log.c.id == run.run_id,
            job_log.c.phase == Phase.UNCONFIRMED,
            job_log.c.executor_address == from_address,
            job_log.c.kill_ms.is_(None),
        )
        .values(
            executor_address=run.address,
            instance_id=run.instance_id,
            unheard_ms=since_ms,
            check_ms=check_ms,
            idle_answers=0,
        )
    )
    return moved.rowcount == 1


def note_heard(connection: Connection, run_ids: Sequence[RunId], unheard_ms: int, idle_answers: int = 0) -> None:
    """An executor answered about these runs, or about their job: busy starts the count of idle answers anew."""
    connection.execute(
        update(job_log)
        .where(job_log.c.id.in_(sorted(run_ids)), func.coalesce(job_log.c.phase, "").in_(_LOOKED_AFTER))
        .values(unheard_ms=unheard_ms, idle_answers=idle_answers)
    )


def note_kill_told(connection: Connection, run_id: RunId, message: str, check_ms: int) -> None:
    """An executor was told to end a run, and what it said: the run has until `check_ms` to give its result."""
    still = (job_log.c.id == run_id, job_log.c.phase.is_not(None))
    row = connection.execute(select(job_log.c.trigger_msg).where(*still).with_for_update()).first()
    if row is not None:
        told = cut_message(f"{row.trigger_msg or ''}{message}")
        connection.execute(update(job_log).where(*still).values(trigger_msg=told, check_ms=check_ms))
