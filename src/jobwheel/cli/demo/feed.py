"""The runs of the demo as they come and end."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from jobwheel.cli.demo.verdict import percentile
from jobwheel.cli.output import one_line
from jobwheel.cli.rest import Rest
from jobwheel.cli.runs_commands import message_of
from jobwheel.kernel.instants import instant_text

_READ: Final = 200
_KEPT_LATENESS: Final = 10_000


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in words, ready to be shown."""

    run_id: int
    job: str
    planned: str
    late: str
    result: str
    took: str
    message: str


@dataclass(frozen=True, slots=True)
class News:
    """What a look at the admin gave: the newest runs, and those that have ended since the last look, oldest first."""

    recent: tuple[RunLine, ...]
    ended: tuple[RunLine, ...]


class RunFeed:
    """Looks at the admin's newest runs, and counts."""

    def __init__(self, group_id: int, names: dict[int, str], from_ms: int) -> None:
        self._query = {"group_id": group_id, "planned_from": instant_text(from_ms), "limit": _READ}
        self._names = names
        self._ended: set[int] = set()
        self._lateness: list[int] = []
        self.outcomes: Counter[str] = Counter()

    def look(self, rest: Rest, now_ms: int) -> News:
        """Read the newest runs that are due.

        Raises:
            JobwheelError: the admin does not answer.
        """
        # A run is written some seconds before it is due.
        now = instant_text(now_ms)
        read = [run for run in rest.get("/api/v1/runs", self._query)["items"] if run["due_at"] <= now]
        runs = sorted(read, key=lambda run: (run["due_at"], run["id"]), reverse=True)
        ended = [run for run in reversed(runs) if run["outcome"] is not None and run["id"] not in self._ended]
        for run in ended:
            self._count(run)
        # Older ones are not read again.
        oldest = min((run["id"] for run in runs), default=0)
        self._ended = {run_id for run_id in self._ended if run_id >= oldest}
        return News(tuple(self._line(run) for run in runs), tuple(self._line(run) for run in ended))

    def lateness_p99_ms(self) -> int | None:
        """How late the runs so far were sent."""
        return percentile(sorted(self._lateness), 0.99)

    def _count(self, run: dict[str, Any]) -> None:
        self._ended.add(run["id"])
        self.outcomes[run["outcome"]] += 1
        late = _milliseconds(run["due_at"], run["sent_at"])
        if late is not None and len(self._lateness) < _KEPT_LATENESS:
            self._lateness.append(late)

    def _line(self, run: dict[str, Any]) -> RunLine:
        return RunLine(
            run_id=run["id"],
            job=one_line(self._names.get(run["job_id"], f"job {run['job_id']}")),
            planned=_clock_time(run["planned_at"]),
            late=_span(run["due_at"], run["sent_at"]),
            result=run["outcome"] or run["phase"] or "",
            took=_span(run["sent_at"], run["ended_at"]),
            message=one_line(message_of(run)) if run["outcome"] else "",
        )


def _clock_time(instant: str) -> str:
    return f"{datetime.fromisoformat(instant).astimezone():%H:%M:%S}"


def _span(earlier: str | None, later: str | None) -> str:
    span = _milliseconds(earlier, later)
    return "" if span is None else f"{span} ms"


def _milliseconds(earlier: str | None, later: str | None) -> int | None:
    if earlier is None or later is None:
        return None
    return round((datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds() * 1000)
