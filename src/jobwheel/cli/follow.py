"""Following a run, all its attempts and shards, to the end."""

import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeVar

from jobwheel.cli.errors import AdminUnreachableError, RefusedError, UnreadableReplyError
from jobwheel.cli.output import print_text, tell
from jobwheel.kernel.errors import JobwheelError

Answer = TypeVar("Answer")

EXIT_CODES: Final[Mapping[str, int]] = {
    "succeeded": 0,
    "failed": 10,
    "timed_out": 11,
    "killed": 12,
    "lost": 13,
    "covered": 14,
    "discarded": 15,
}
"""How a command ends that followed a run."""

GONE_CODE: Final = 16
"""The same for a run that is not there any more: its job was deleted, or it was taken back."""

INTERRUPTED_CODE: Final = 130

_EVERY_S: Final = 0.5
_PATIENCE_S: Final = 60.0
_TRIED_AGAIN: Final = ("failed", "timed_out", "lost")


class Source(Protocol):
    """What is asked for runs and logs: the REST API."""

    def get(self, path: str, query: Mapping[str, object] | None = None) -> Any:
        """The JSON of a reply; raises a `JobwheelError`."""
        ...


class Follower:
    """Prints what runs write, and says how they ended. An admin that is away for a minute is waited for.

    `wait` waits so many seconds.
    """

    def __init__(self, source: Source, wait: Callable[[float], object] = threading.Event().wait) -> None:
        self._source = source
        self._wait = wait
        self._unreadable: set[int] = set()

    def follow(self, run_id: int) -> int:
        """Follow a run, its retries and, if it is a broadcast, its other shards; return the exit code.

        The code of a broadcast is that of its first shard that did not succeed.
        """
        try:
            first = self._follow_chain(run_id)
            ends = [first, *(self._follow_chain(each) for each in self._other_shards(first))]
        except RefusedError as error:
            if error.status != 404:
                raise
            tell(f"run {run_id}: is gone: {error.message}")
            return GONE_CODE
        codes = [EXIT_CODES.get(run["outcome"] or "", 1) for run in ends]
        return next((code for code in codes if code), 0)

    def _follow_chain(self, run_id: int) -> dict[str, Any]:
        """Follow a run and its retries; return the last one of them."""
        while True:
            run = self._follow_one(run_id)
            again = self._next_attempt(run)
            how = f"run {run_id}: {run['outcome'] or 'ended'}"
            if again is None:
                tell(how)
                return run
            tell(f"{how}, is tried again as run {again}")
            run_id = again

    def _follow_one(self, run_id: int) -> dict[str, Any]:
        line = 1
        while True:
            run: dict[str, Any] = self._patiently(lambda: self._source.get(f"/api/v1/runs/{run_id}"))
            has_ended = run["phase"] is None
            if has_ended or run["accepted_at"] is not None or run["phase"] == "accepted":
                line = self._print_from(run_id, line)
            if has_ended:
                return run
            self._wait(_EVERY_S)

    def _print_from(self, run_id: int, line: int) -> int:
        """Print what there is of the log from a line on; return the next one."""
        while True:
            try:
                page = self._source.get(f"/api/v1/runs/{run_id}/log", {"from_line": line})
            except (RefusedError, AdminUnreachableError, UnreadableReplyError) as error:
                if isinstance(error, RefusedError) and error.status == 404:
                    raise
                # Its executor may be starting anew; how the run ends is known without it.
                if run_id not in self._unreadable:
                    self._unreadable.add(run_id)
                    tell(f"the log of run {run_id} cannot be read at the moment: {error.message}")
                return line
            _write(page["content"])
            if page["is_end"] or page["to_line"] < line:
                return max(line, int(page["to_line"]) + 1)
            line = int(page["to_line"]) + 1

    def _next_attempt(self, run: Mapping[str, Any]) -> int | None:
        if run["outcome"] not in _TRIED_AGAIN:
            return None
        chain = run.get("first_run_id") or run["id"]
        later = [each["id"] for each in self._of_same_time(run) if each.get("first_run_id") == chain]
        return min((each for each in later if each > run["id"]), default=None)

    def _other_shards(self, run: Mapping[str, Any]) -> list[int]:
        if run["broadcast_id"] is None:
            return []
        shards = [each for each in self._of_same_time(run) if each["broadcast_id"] == run["broadcast_id"]]
        return sorted(
            each["id"] for each in shards if each["attempt"] == 1 and each["shard_index"] != run["shard_index"]
        )

    def _of_same_time(self, run: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The runs of the job with this planned time: all attempts and shards have it."""
        if run["planned_at"] is None:
            return []
        after = datetime.fromisoformat(run["planned_at"]) + timedelta(milliseconds=1)
        query = {
            "job_id": run["job_id"],
            "planned_from": run["planned_at"],
            "planned_until": after.isoformat(timespec="milliseconds"),
            "limit": 500,
        }
        found: list[dict[str, Any]] = self._patiently(lambda: self._source.get("/api/v1/runs", query))["items"]
        return found

    def _patiently(self, ask: Callable[[], Answer]) -> Answer:
        waited_s = 0.0
        while True:
            try:
                return ask()
            except (AdminUnreachableError, UnreadableReplyError, RefusedError) as error:
                if not _may_pass(error) or waited_s >= _PATIENCE_S:
                    raise
                if not waited_s:
                    tell(f"{error.message}; trying again for {_PATIENCE_S:.0f} s")
            self._wait(1.0)
            waited_s += 1.0


def _may_pass(error: JobwheelError) -> bool:
    return not isinstance(error, RefusedError) or error.status in (502, 503, 504)


def _write(content: str) -> None:
    if content and not content.endswith("\n"):
        content += "\n"
    print_text(content)
