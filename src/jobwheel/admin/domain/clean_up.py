"""Removing runs from the run log because a person asked for it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from jobwheel.admin.domain.ids import CleanUpId, GroupId, JobId


class CleanUpWhich(StrEnum):
    """Which runs go: what the reference offers."""

    OLDER_THAN_1_MONTH = "older_than_1_month"
    OLDER_THAN_3_MONTHS = "older_than_3_months"
    OLDER_THAN_6_MONTHS = "older_than_6_months"
    OLDER_THAN_1_YEAR = "older_than_1_year"
    BUT_LAST_1000 = "but_last_1000"
    BUT_LAST_10000 = "but_last_10000"
    BUT_LAST_30000 = "but_last_30000"
    BUT_LAST_100000 = "but_last_100000"
    ALL = "all"

    @property
    def months(self) -> int | None:
        """How many months old the runs are at least; None = their age does not matter."""
        return _MONTHS.get(self)

    @property
    def kept(self) -> int:
        """How many of the newest runs are kept."""
        return int(self.removeprefix(_BUT_LAST)) if self.startswith(_BUT_LAST) else 0


_BUT_LAST: Final = "but_last_"
_MONTHS: Final = {
    CleanUpWhich.OLDER_THAN_1_MONTH: 1,
    CleanUpWhich.OLDER_THAN_3_MONTHS: 3,
    CleanUpWhich.OLDER_THAN_6_MONTHS: 6,
    CleanUpWhich.OLDER_THAN_1_YEAR: 12,
}


class CleanUpState(StrEnum):
    """Where a clean-up is: waiting and running ones are taken up, after a restart too."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


OPEN_STATES: Final = (CleanUpState.WAITING, CleanUpState.RUNNING)


@dataclass(frozen=True, slots=True)
class CleanUp:
    """A clean-up. It goes through the runs by id: those up to `after_id` are done with, `below_id` ends it.

    `about` is how many runs there were to look at, `deleted` how many are gone: open ones, and those of others in
    between, stay. Instants are epoch milliseconds. `group_id` and `job_id` None: of all.
    """

    id: CleanUpId
    state: CleanUpState
    which: CleanUpWhich
    group_id: GroupId | None
    job_id: JobId | None
    after_id: int
    below_id: int
    about: int
    deleted: int
    actor: str
    created_ms: int
    updated_ms: int
    ended_ms: int | None
