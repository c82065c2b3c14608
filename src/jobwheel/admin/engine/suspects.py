"""The jobs whose claim the database refused: who is tried again, and who has been refused for too long."""

from dataclasses import dataclass

from jobwheel.admin.domain.ids import JobId
from jobwheel.kernel.clock import Clock

REFUSED_S = 30.0
"""A job that was refused for so long is stopped. What refuses it may pass, and a stopped job loses runs."""

_BETWEEN_TRIES_S = 0.5
_MOST_TRIED = 50
"""So many are tried in a pass: each costs a transaction, and everyone else waits."""
_LET_BE_S = 60.0
"""A job that cannot even be stopped is tried so seldom."""


@dataclass(slots=True)
class _Suspect:
    """Since when a job is refused, and when it is tried next; both monotonic, in seconds."""

    since_s: float
    next_s: float


class Suspects:
    """Jobs that are left out of the claims of many, and tried alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._suspects: dict[JobId, _Suspect] = {}

    def add(self, job_id: JobId) -> None:
        """Suspect a job that was refused just now; it may be tried at once."""
        now_s = self._clock.monotonic()
        self._suspects[job_id] = _Suspect(now_s, now_s)

    def ids(self) -> set[JobId]:
        """All of them."""
        return set(self._suspects)

    def to_try(self) -> list[JobId]:
        """Those whose turn it is, the longest waiting first."""
        now_s = self._clock.monotonic()
        due = [(suspect.next_s, job_id) for job_id, suspect in self._suspects.items() if suspect.next_s <= now_s]
        return [job_id for _, job_id in sorted(due)[:_MOST_TRIED]]

    def refused_again(self, job_id: JobId) -> bool:
        """Note that a job was refused; return whether that has lasted for too long."""
        now_s = self._clock.monotonic()
        suspect = self._suspects[job_id]
        suspect.next_s = now_s + _BETWEEN_TRIES_S
        return now_s - suspect.since_s >= REFUSED_S

    def let_be(self, job_id: JobId) -> None:
        """Try a job no more for a while."""
        self._suspects[job_id].next_s = self._clock.monotonic() + _LET_BE_S

    def acquit(self, job_id: JobId) -> None:
        """A job was claimed, stopped or is gone."""
        del self._suspects[job_id]
