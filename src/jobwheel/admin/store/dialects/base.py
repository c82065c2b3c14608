"""What the store asks of each kind of database in its own words, and what their rows have in common."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, Table

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.run import Lineage, NewRun, Outcome
from jobwheel.admin.domain.writes import (
    Accepted,
    Cancelled,
    Ended,
    Settlement,
    TakeOff,
    Unanswered,
    Unconfirmed,
    Unsent,
)
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.wire.messages import SUCCESS, TIMED_OUT

Write = TypeVar("Write", Accepted, Cancelled, Settlement, Unanswered, Unconfirmed, Unsent)

Move = tuple[JobId, int, int, int | None, int, bool]
"""A job's way to its next time: the job, next time and version as read, last time, next time, whether it runs on."""

PRIMARY_KEY = "PRIMARY"
"""What `by_index` calls the order of a table's ids."""


class Statements(Protocol):
    """The hot statements, and whatever else databases say differently.

    Each method runs inside the caller's writing transaction. "Matched" are the rows that still were as the statement
    demands when it changed them: they decide, whatever was read before.
    """

    @property
    def is_ddl_transactional(self) -> bool:
        """Whether a change of the schema is undone with its transaction."""
        ...

    @property
    def has_partial_indexes(self) -> bool:
        """Whether an index may hold some rows of a table and not the others."""
        ...

    def insert_runs(self, connection: Connection, zone: InstallationZone, runs: Sequence[NewRun]) -> list[RunId]:
        """Write pending runs; return their ids in the order of `runs`."""
        ...

    def own_due(
        self, connection: Connection, node_id: NodeId, due_before_ms: int, most: int, without_jobs: Sequence[JobId]
    ) -> list[RunId]:
        """The node's pending runs that come due, the earliest first, but for those of some jobs."""
        ...

    def take_off(self, connection: Connection, node_id: NodeId, sent_ms: int, runs: Sequence[TakeOff]) -> set[RunId]:
        """Pending → sending; return the runs that matched: the others are not this node's any more, or are gone."""
        ...

    def redirect(self, connection: Connection, node_id: NodeId, run: TakeOff, from_address: str) -> bool:
        """Give a run being sent another address; False if it is not this node's any more, or is to be killed."""
        ...

    def accept(self, connection: Connection, node_id: NodeId, writes: Iterable[Accepted]) -> None:
        """Write down that executors said yes. A run may be there twice: first sent, then sent again."""
        ...

    def end_unsent(self, connection: Connection, node_id: NodeId, writes: Iterable[Unsent]) -> list[Ended]:
        """End runs without a result; return those that matched."""
        ...

    def end_unanswered(
        self, connection: Connection, zone: InstallationZone, writes: Iterable[Unanswered]
    ) -> list[Ended]:
        """End runs of which no result is waited for any more, lost or killed; return those that matched."""
        ...

    def cancel(
        self, connection: Connection, zone: InstallationZone, node_id: NodeId, writes: Iterable[Cancelled]
    ) -> list[Ended]:
        """End runs that were killed before they were sent; return those that matched."""
        ...

    def mark_unconfirmed(self, connection: Connection, node_id: NodeId, writes: Iterable[Unconfirmed]) -> None:
        """Write down that runs may or may not have arrived."""
        ...

    def settle(
        self, connection: Connection, zone: InstallationZone, writes: Iterable[Settlement], late: str
    ) -> list[Ended]:
        """Write results; return the runs that matched. The first result wins; one replaces "lost".

        What stood in such a run's message goes to the end of its dispatch message, and the line `late` after that.
        """
        ...

    def move_on(self, connection: Connection, moves: Sequence[Move]) -> set[JobId]:
        """Give jobs their next times; return the matched.

        Without a last time the job keeps the one that it has.
        """
        ...

    def reschedule_fix_delay(self, connection: Connection, ends: Mapping[JobId, int]) -> bool:
        """Give FIX_DELAY jobs without an open run their next time; whether there was one (`behaviour.md`).

        `ends` says when the last run of each job ended. The jobs are held.
        """
        ...

    def lock_schedule(self, connection: Connection) -> None:
        """Hold the row that admins of either make honour until the transaction ends; make it if it is missing.

        Raises:
            ScheduleLockedError: somebody else holds it; who waited would keep a connection busy.
        """
        ...

    def wait_for_lock(self, connection: Connection, name: str) -> None:
        """Hold a row of the lock table until the transaction ends; wait for whoever holds it, make it if missing."""
        ...

    def schema_lock(self, connection: Connection) -> AbstractContextManager[None]:
        """Inside it no other admin makes or changes the schema."""
        ...

    def by_index(self, query: Select[Any], table: Table, index: str) -> Select[Any]:
        """Have a query of one table go by an index, on a database that is known to choose a worse one."""
        ...

    def without_index(self, query: Select[Any], table: Table, index: str) -> Select[Any]:
        """Have a query of one table not go by an index, on a database that is known to choose it wrongly."""
        ...

    def all_rows(
        self, connection: Connection, query: Select[Any], parameters: Mapping[str, object]
    ) -> Sequence[Sequence[Any]]:
        """The rows of a query that is made once; what `among` names is given as a list."""
        ...

    def among(self, column: ColumnElement[int], name: str) -> ColumnElement[bool]:
        """That a column has one of the values in the list that is the parameter `name`: one text for any number."""
        ...

    def ten_minutes_of(self, column: ColumnElement[datetime]) -> ColumnElement[str]:
        """A wall time cut to ten minutes, as a text such as `2026-11-27 10:3`."""
        ...

    def tables_without_statistics(
        self, connection: Connection, tables: Collection[str], least_bytes: int
    ) -> Sequence[str]:
        """Those of the tables of which the planner guesses what is in a column, and that are at least so large."""
        ...

    def take_statistics(self, connection: Connection, table: str) -> None:
        """Have the planner know what is in a table. It may take seconds, and holds nobody up."""
        ...

    def upsert(
        self, connection: Connection, table: Table, key: Mapping[str, object], values: Mapping[str, object]
    ) -> None:
        """Insert the row of a unique key, or give it these values if it is there."""
        ...

    def upsert_all(
        self, connection: Connection, table: Table, key: Sequence[str], rows: Sequence[Mapping[str, object]]
    ) -> None:
        """The same for many rows of the same columns, in which a key is there once: one statement, made once."""
        ...


def rounds(writes: Iterable[Write]) -> Iterator[list[Write]]:
    """The writes in their order, in lists that hold no run twice: of two rows for one, a join would take any."""
    left = list(writes)
    while left:
        once: dict[RunId, Write] = {}
        left = [write for write in left if once.setdefault(write.run_id, write) is not write]
        yield list(once.values())


RUN_COLUMNS = (
    "job_group",
    "job_id",
    "executor_param",
    "trigger_time",
    "planned_ms",
    "due_ms",
    "triggered_ms",
    "trigger_type",
    "owner",
    "attempt",
    "named_addresses",
    "executor_sharding_param",
    "broadcast_id",
)
"""The columns of `run_row`, in its order."""

LINEAGE_COLUMNS = ("first_run_id", "parent_run_id", "executor_fail_retry_count", "executor_address")
"""What `run_row` has as well for runs that come of others."""


def run_rows(zone: InstallationZone, runs: Sequence[NewRun]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """New runs as rows, and the columns of these."""
    if all(run.lineage is None for run in runs):
        return RUN_COLUMNS, [run_row(zone, run) for run in runs]
    return RUN_COLUMNS + LINEAGE_COLUMNS, [run_row(zone, run) + _lineage_row(run.lineage or _NONE) for run in runs]


_NONE = Lineage()


def _lineage_row(lineage: Lineage) -> tuple[Any, ...]:
    return lineage.first_run_id, lineage.parent_run_id, lineage.retries_left, lineage.address or None


def run_row(zone: InstallationZone, run: NewRun) -> tuple[Any, ...]:
    """A new run as a row."""
    return (
        run.group_id,
        run.job_id,
        # SQLite's JSON functions end a text at a NUL, PostgreSQL stores none.
        run.parameter.replace("\x00", "\ufffd"),
        zone.to_wall_text(run.triggered_ms),
        run.planned_ms,
        run.due_ms,
        run.triggered_ms,
        run.trigger_type.value,
        run.owner,
        run.attempt,
        ",".join(run.named_addresses) or None,
        None if run.shard is None else str(run.shard),
        run.broadcast_id,
    )


def effective_outcome(write: Settlement, kill_ms: int | None) -> Outcome:
    """How a result ends a run: `killed`, if somebody asked for that and it neither succeeded nor timed out."""
    return write.outcome if kill_ms is None or write.code in (SUCCESS, TIMED_OUT) else Outcome.KILLED


def accept_row(write: Accepted) -> tuple[Any, ...]:
    """A yes as a row: run, message, acceptance, instance; when it was heard of and is looked at."""
    return write.run_id, write.message, write.accepted_ms, write.instance_id, write.heard_ms, write.check_ms


def end_row(zone: InstallationZone, write: Unanswered | Cancelled) -> tuple[Any, ...]:
    """The end of a run without a result as a row: run, message, wall time, end."""
    return write.run_id, write.message, zone.to_wall_text(write.ended_ms), write.ended_ms


def settle_row(zone: InstallationZone, write: Settlement) -> tuple[Any, ...]:
    """A result as a row: run, code, message, wall time, outcome, end; dispatch, acceptance, instance; group."""
    accepted = write.accepted
    return (
        write.run_id,
        write.code,
        write.message,
        zone.to_wall_text(write.ended_ms),
        write.outcome.value,
        write.ended_ms,
        None if accepted is None else accepted.message,
        None if accepted is None else accepted.accepted_ms,
        None if accepted is None else accepted.instance_id,
        write.group_id,
    )
