"""Alarms: what is told to people, about what, and through which channels."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import msgspec

from jobwheel.admin.domain.ids import ChannelId, GroupId, JobId, RunId
from jobwheel.admin.domain.run import Outcome

MERGED_FOR_MS: Final = 10 * 60_000
"""Equal alarms within this time are one message: the first at once, what follows at the end of the time."""

TRIED_FOR_MS: Final = 3600_000
"""What could not be sent is tried again for so long."""

MOST_WORDS: Final = 1000
"""How many characters of a run's message an alarm repeats."""

MOST_MARKED: Final = 500
"""Of how many merged runs it is noted whether their alarm was sent."""


class AlarmKind(StrEnum):
    """What an alarm is about. The names are stable: templates of webhooks use them."""

    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    KILLED = "killed"
    COVERED = "covered"
    DISCARDED = "discarded"
    RECOVERED = "recovered"
    LATE_START = "late_start"
    LONG_RUN = "long_run"
    BACKLOG = "backlog"
    GROUP_OFFLINE = "group_offline"
    GROUP_ONLINE = "group_online"
    EXECUTOR_GONE = "executor_gone"
    EXECUTOR_BACK = "executor_back"
    NO_SCHEDULING_PASS = "no_scheduling_pass"  # noqa: S105 - the name of a trouble
    CLOCK_OFF = "clock_off"
    ADMIN_WELL = "admin_well"
    OUTDATED = "outdated"
    TEST = "test"

    @property
    def is_good(self) -> bool:
        """Whether it tells that something works again."""
        return self in _GOOD

    @property
    def of_admins(self) -> bool:
        """Whether it is about a node of the admin: for channels that take such alarms."""
        return self in _OF_ADMINS


_GOOD: Final = frozenset({AlarmKind.RECOVERED, AlarmKind.GROUP_ONLINE, AlarmKind.EXECUTOR_BACK, AlarmKind.ADMIN_WELL})
_OF_ADMINS: Final = frozenset({AlarmKind.NO_SCHEDULING_PASS, AlarmKind.CLOCK_OFF, AlarmKind.ADMIN_WELL})
_OF_EXECUTORS: Final = frozenset({AlarmKind.EXECUTOR_GONE, AlarmKind.EXECUTOR_BACK})
_FAILURES: Final = frozenset({AlarmKind.FAILED, AlarmKind.TIMED_OUT, AlarmKind.LOST})
BY_WISH: Final = (Outcome.KILLED, Outcome.COVERED, Outcome.DISCARDED)
"""Outcomes that are no failures: alarmed only if the job asks for it."""
_BY_WISH: Final = frozenset(AlarmKind(each.value) for each in BY_WISH)


class AlarmFailures(StrEnum):
    """Which failures of a job are alarmed."""

    FINAL = "FINAL"
    EVERY = "EVERY"
    NONE = "NONE"


@dataclass(frozen=True, slots=True)
class JobAlarms:
    """What a job's people are told of, and where. No channels: the default ones."""

    channel_ids: tuple[ChannelId, ...] = ()
    failures: AlarmFailures = AlarmFailures.FINAL
    also: tuple[Outcome, ...] = ()
    success_after_failure: bool = False
    late_start_s: int | None = None
    long_run_s: int | None = None
    most_open_runs: int | None = None

    def wants(self, kind: AlarmKind, *, is_final: bool) -> bool:
        """Whether an alarm of this kind is sent; `is_final`: no retry follows."""
        if kind in _FAILURES:
            return self.failures is AlarmFailures.EVERY or (self.failures is AlarmFailures.FINAL and is_final)
        if kind in _BY_WISH:
            return kind.value in {each.value for each in self.also}
        return True


@dataclass(frozen=True, slots=True)
class AlarmChannel:
    """A way to people. `settings` are those of its kind, secrets included; a disabled one is sent nothing.

    `is_default`: for jobs that name no channel, and for groups. `for_admins`: for troubles of the admin itself.
    """

    id: ChannelId
    name: str
    kind: str
    settings: Mapping[str, Any]
    disabled: bool = False
    is_default: bool = False
    for_admins: bool = False
    version: int = 0


class Notice(msgspec.Struct, frozen=True):
    """Something that may be an alarm, before it is given to channels. `at_ms` is when it was so.

    `words` say what a run's own message does not: an address, a reason.
    """

    kind: AlarmKind
    at_ms: int
    group_id: GroupId | None = None
    job_id: JobId | None = None
    run_id: RunId | None = None
    attempt: int = 1
    is_final: bool = True
    words: str = ""
    node: str = ""


class AlarmFacts(msgspec.Struct, frozen=True):
    """What an alarm tells, as it waits for its channel. `count` equal ones are one; `zone` is the job's."""

    kind: AlarmKind
    first_ms: int
    last_ms: int
    zone: str
    count: int = 1
    group: str = ""
    job_id: int | None = None
    job: str = ""
    owner: str = ""
    run_id: int | None = None
    planned_ms: int | None = None
    attempt: int = 1
    words: str = ""
    node: str = ""
    emails: tuple[str, ...] = ()
    run_ids: tuple[int, ...] = ()


def merged(older: AlarmFacts, newer: AlarmFacts) -> AlarmFacts:
    """Two equal alarms as one: the newer one's words, what both counted; all executors and nodes that they name."""
    return msgspec.structs.replace(
        newer,
        first_ms=min(older.first_ms, newer.first_ms),
        last_ms=max(older.last_ms, newer.last_ms),
        count=older.count + newer.count,
        words=_both(older.words, newer.words) if newer.kind in _OF_EXECUTORS else newer.words,
        node=_both(older.node, newer.node),
        emails=tuple(dict.fromkeys((*older.emails, *newer.emails))),
        run_ids=(*older.run_ids, *newer.run_ids)[:MOST_MARKED],
    )


def _both(older: str, newer: str) -> str:
    told = ", ".join(filter(None, dict.fromkeys([*older.split(", "), *newer.split(", ")])))
    return told if len(told) <= MOST_WORDS else f"{told[: MOST_WORDS - 1]}…"
