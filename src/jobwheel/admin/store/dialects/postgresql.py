"""PostgreSQL: one statement for a whole batch, whose rows come in as one array for each column.

What RETURNING gives is what matched. `|| ''` and `+ 0` keep the planner from indexes on those columns: each row is
looked up by its id, in the order of the ids, so that two batches meet as seldom as can be.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, BigInteger, ColumnElement, Connection, Select, Table, any_, bindparam, func
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import NewRun, Outcome
from jobwheel.admin.domain.writes import Accepted, Ended, Settlement, TakeOff, Unconfirmed
from jobwheel.admin.store.dialects.base import Move, accept_row, rounds, run_rows, settle_row
from jobwheel.admin.store.dialects.on_conflict import OnConflict
from jobwheel.admin.store.dialects.planner import IsToldOfItsTables
from jobwheel.admin.store.dialects.postgresql_ends import PostgresqlEnds, as_columns
from jobwheel.admin.store.errors import ScheduleLockedError
from jobwheel.admin.store.tables import SCHEDULE_LOCK
from jobwheel.admin.store.trouble import code_of
from jobwheel.admin.store.zone import InstallationZone

_LOCK_NOT_AVAILABLE = "55P03"
_SCHEMA_LOCK = 0x6A6F6277
"""The advisory lock under which the schema changes: any number that is the same on every node."""

_RUN_TYPES: Mapping[str, str] = {
    "job_group": "int",
    "job_id": "int",
    "executor_param": "text",
    "trigger_time": "text",
    "planned_ms": "bigint",
    "due_ms": "bigint",
    "triggered_ms": "bigint",
    "trigger_type": "text",
    "owner": "bigint",
    "attempt": "int",
    "named_addresses": "text",
    "executor_sharding_param": "text",
    "broadcast_id": "bigint",
    "first_run_id": "bigint",
    "parent_run_id": "bigint",
    "executor_fail_retry_count": "int",
    "executor_address": "text",
}

_OWN_DUE = """
SELECT id FROM xxl_job_log WHERE phase = 'pending' AND owner = $1 AND due_ms <= $2 ORDER BY due_ms LIMIT $3
"""

_OWN_DUE_OF_OTHERS = """
SELECT id FROM xxl_job_log
WHERE phase = 'pending' AND owner = $1 AND due_ms <= $2 AND job_id <> ALL($4::int[]) ORDER BY due_ms LIMIT $3
"""

_TAKE_OFF = """
UPDATE xxl_job_log AS log
SET phase = 'sending', executor_address = given.address, executor_handler = given.handler, route = given.route,
    instance_id = given.instance_id, sent_ms = $1
FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[])
     AS given(id, address, handler, route, instance_id)
WHERE log.id = given.id AND log.phase || '' = 'pending' AND log.owner + 0 = $7 AND log.kill_ms IS NULL
RETURNING log.id
"""

_REDIRECT = """
UPDATE xxl_job_log SET executor_address = $1, instance_id = $2
WHERE id = $3 AND phase || '' = 'sending' AND owner + 0 = $4 AND executor_address || '' = $5 AND kill_ms IS NULL
"""

# A write that comes after the result finds the run done and adds only message and times. A run that is to be killed is
# looked at now.
_ACCEPTED = """
UPDATE xxl_job_log AS log
SET trigger_msg = COALESCE(log.trigger_msg, '') || given.message,
    accepted_ms = COALESCE(log.accepted_ms, given.accepted_ms),
    instance_id = COALESCE(given.instance_id, log.instance_id),
    phase = CASE WHEN log.phase IS NULL THEN NULL ELSE 'accepted' END, owner = NULL,
    unheard_ms = given.heard_ms,
    idle_answers = 0, check_ms = CASE WHEN log.phase IS NULL THEN NULL ELSE COALESCE(log.kill_ms, given.check_ms) END
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[])
     AS given(id, message, accepted_ms, instance_id, heard_ms, check_ms)
WHERE log.id = given.id
  AND (log.phase || '' = 'unconfirmed' OR (log.phase || '' = 'sending' AND log.owner + 0 = $7)
       OR (log.phase || '' IS NULL AND log.outcome || '' <> 'lost' AND log.accepted_ms IS NULL
           AND log.trigger_code + 0 = 200))
"""

_UNCONFIRMED = """
UPDATE xxl_job_log AS log
SET trigger_msg = COALESCE(log.trigger_msg, '') || given.message, owner = NULL, unheard_ms = given.since_ms,
    phase = CASE WHEN log.phase IS NULL THEN NULL ELSE 'unconfirmed' END,
    check_ms = CASE WHEN log.phase IS NULL THEN NULL ELSE COALESCE(log.kill_ms, given.check_ms) END
FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[]) AS given(id, message, since_ms, check_ms)
WHERE log.id = given.id
  AND ((log.phase || '' = 'sending' AND log.owner + 0 = $5)
       OR (log.phase || '' IS NULL AND log.outcome || '' <> 'lost' AND log.accepted_ms IS NULL
           AND log.unheard_ms IS NULL AND log.trigger_code + 0 = 200))
"""

# The last condition is of a Java admin's running row: it has no phase, and its codes say that it still runs.
_SETTLE = """
UPDATE xxl_job_log AS log
SET trigger_code = 200, handle_code = given.code, handle_msg = given.message,
    handle_time = given.wall_time::timestamp, ended_ms = given.ended_ms,
    outcome = CASE WHEN log.kill_ms IS NOT NULL AND given.code NOT IN (200, 502) THEN 'killed' ELSE given.outcome END,
    alarm_status = CASE WHEN given.code = 200 THEN log.alarm_status ELSE 1 END,
    trigger_msg = CASE
        WHEN log.outcome = 'lost' THEN COALESCE(log.trigger_msg, '')
            || CASE WHEN log.handle_msg <> '' THEN log.handle_msg || chr(10) ELSE '' END || $11::text
            || COALESCE(given.dispatch, '')
        WHEN given.dispatch IS NULL THEN log.trigger_msg
        ELSE COALESCE(log.trigger_msg, '') || given.dispatch END,
    accepted_ms = COALESCE(log.accepted_ms, given.accepted_ms),
    instance_id = COALESCE(given.instance_id, log.instance_id),
    phase = NULL, owner = NULL, check_ms = NULL
FROM unnest($1::bigint[], $2::int[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[],
            $8::bigint[], $9::text[], $10::int[])
     AS given(id, code, message, wall_time, outcome, ended_ms, dispatch, accepted_ms, instance_id, job_group)
WHERE log.id = given.id
  AND (given.job_group IS NULL OR log.job_group = given.job_group)
  AND (log.phase || '' IN ('sending', 'unconfirmed', 'accepted') OR log.outcome || '' = 'lost'
       OR (log.phase || '' IS NULL AND log.outcome || '' IS NULL AND log.trigger_code + 0 IN (0, 200)
           AND log.handle_code + 0 = 0))
RETURNING log.id, log.job_id, log.outcome
"""

_MOVE_ON = """
UPDATE xxl_job_info AS job
SET trigger_last_time = COALESCE(given.last_ms, job.trigger_last_time), trigger_next_time = given.next_ms,
    trigger_status = given.running
FROM unnest($1::int[], $2::bigint[], $3::int[], $4::bigint[], $5::bigint[], $6::smallint[])
     AS given(id, read_ms, read_version, last_ms, next_ms, running)
WHERE job.id = given.id AND job.trigger_status + 0 = 1 AND job.trigger_next_time + 0 = given.read_ms
    AND job.version = given.read_version
RETURNING job.id
"""

# A text that is no number must not make the whole batch fail: the next claim finds the job corrupt.
_RESCHEDULE_FIX_DELAY = """
UPDATE xxl_job_info AS job
SET trigger_next_time = given.ended_ms
    + 1000 * CASE WHEN job.schedule_conf ~ '^[0-9]{1,9}$' THEN job.schedule_conf::bigint ELSE 0 END
FROM unnest($1::int[], $2::bigint[]) AS given(id, ended_ms)
WHERE job.id = given.id AND job.schedule_type = 'FIX_DELAY' AND job.trigger_status = 1 AND job.trigger_next_time = $3
  AND NOT EXISTS (SELECT 1 FROM xxl_job_log AS log WHERE log.job_id = job.id AND log.phase IS NOT NULL)
"""

_LOCK_SCHEDULE = "SELECT 1 FROM xxl_job_lock WHERE lock_name = $1 FOR UPDATE NOWAIT"
# A conflict locks the row that is there.
_WAIT_FOR_LOCK = """
INSERT INTO xxl_job_lock (lock_name) VALUES ($1) ON CONFLICT (lock_name) DO UPDATE SET lock_name = EXCLUDED.lock_name
"""


class PostgresqlStatements(OnConflict, IsToldOfItsTables, PostgresqlEnds):
    """See `Statements`."""

    is_ddl_transactional = True
    insert_into = staticmethod(insert)

    def insert_runs(self, connection: Connection, zone: InstallationZone, runs: Sequence[NewRun]) -> list[RunId]:
        columns, rows = run_rows(zone, runs)
        # The ids are drawn in the order of the rows; the order in which they are returned is nobody's promise.
        return sorted(RunId(row.id) for row in connection.exec_driver_sql(_insert_of(columns), _columns(rows)))

    def own_due(
        self, connection: Connection, node_id: NodeId, due_before_ms: int, most: int, without_jobs: Sequence[JobId]
    ) -> list[RunId]:
        if without_jobs:
            values = (node_id, due_before_ms, most, list(without_jobs))
            return list(connection.exec_driver_sql(_OWN_DUE_OF_OTHERS, values).scalars())
        return list(connection.exec_driver_sql(_OWN_DUE, (node_id, due_before_ms, most)).scalars())

    def take_off(self, connection: Connection, node_id: NodeId, sent_ms: int, runs: Sequence[TakeOff]) -> set[RunId]:
        if not runs:
            return set()
        rows = sorted((run.run_id, run.address, run.handler, run.route, run.instance_id) for run in _by_id(runs))
        return set(connection.exec_driver_sql(_TAKE_OFF, (sent_ms, *as_columns(rows), node_id)).scalars())

    def redirect(self, connection: Connection, node_id: NodeId, run: TakeOff, from_address: str) -> bool:
        values = (run.address, run.instance_id, run.run_id, node_id, from_address)
        return connection.exec_driver_sql(_REDIRECT, values).rowcount == 1

    def accept(self, connection: Connection, node_id: NodeId, writes: Iterable[Accepted]) -> None:
        for once in rounds(writes):
            rows = [accept_row(write) for write in once]
            connection.exec_driver_sql(_ACCEPTED, (*as_columns(rows), node_id))

    def mark_unconfirmed(self, connection: Connection, node_id: NodeId, writes: Iterable[Unconfirmed]) -> None:
        for once in rounds(writes):
            rows = [(write.run_id, write.message, write.since_ms, write.check_ms) for write in once]
            connection.exec_driver_sql(_UNCONFIRMED, (*as_columns(rows), node_id))

    def settle(
        self, connection: Connection, zone: InstallationZone, writes: Iterable[Settlement], late: str
    ) -> list[Ended]:
        ended = []
        for once in rounds(writes):
            rows = [settle_row(zone, write) for write in once]
            ended += _ended(once, connection.exec_driver_sql(_SETTLE, (*as_columns(rows), late)))
        return ended

    def move_on(self, connection: Connection, moves: Sequence[Move]) -> set[JobId]:
        if not moves:
            return set()
        rows = [(*move[:5], int(move[5])) for move in sorted(moves, key=lambda move: move[0])]
        return set(connection.exec_driver_sql(_MOVE_ON, as_columns(rows)).scalars())

    def reschedule_fix_delay(self, connection: Connection, ends: Mapping[JobId, int]) -> bool:
        if not ends:
            return False
        values = (*as_columns(sorted(ends.items())), AWAITING_SETTLEMENT_MS)
        return connection.exec_driver_sql(_RESCHEDULE_FIX_DELAY, values).rowcount > 0

    def lock_schedule(self, connection: Connection) -> None:
        try:
            found = connection.exec_driver_sql(_LOCK_SCHEDULE, (SCHEDULE_LOCK,)).first()
        except DBAPIError as error:
            if code_of(error) == _LOCK_NOT_AVAILABLE:
                raise ScheduleLockedError from error
            raise
        if found is None:
            self.wait_for_lock(connection, SCHEDULE_LOCK)

    def wait_for_lock(self, connection: Connection, name: str) -> None:
        connection.exec_driver_sql(_WAIT_FOR_LOCK, (name,))

    @contextmanager
    def schema_lock(self, connection: Connection) -> Iterator[None]:
        # It goes with the transaction.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock($1)", (_SCHEMA_LOCK,))
        yield

    def by_index(self, query: Select[Any], table: Table, index: str) -> Select[Any]:  # noqa: ARG002 - the protocol's
        # Its statistics know better.
        return query

    def all_rows(
        self, connection: Connection, query: Select[Any], parameters: Mapping[str, object]
    ) -> Sequence[Sequence[Any]]:
        return connection.execute(query, parameters).all()

    def among(self, column: ColumnElement[int], name: str) -> ColumnElement[bool]:
        return column == any_(bindparam(name, type_=ARRAY(BigInteger)))

    def ten_minutes_of(self, column: ColumnElement[datetime]) -> ColumnElement[str]:
        return func.left(func.to_char(column, "YYYY-MM-DD HH24:MI"), 15)


@functools.cache
def _insert_of(columns: tuple[str, ...]) -> str:
    """The statement that writes pending runs of these columns, an array for each, and returns their ids."""
    names = ", ".join(columns)
    arrays = ", ".join(f"${at}::{_RUN_TYPES[name]}[]" for at, name in enumerate(columns, 1))
    values = names.replace("trigger_time", "trigger_time::timestamp")
    return (
        f"INSERT INTO xxl_job_log ({names}, phase) SELECT {values}, 'pending' "  # noqa: S608 - the program's columns
        f"FROM unnest({arrays}) WITH ORDINALITY AS given({names}, position) ORDER BY position RETURNING id"
    )


def _columns(rows: Sequence[tuple[Any, ...]]) -> tuple[list[Any], ...]:
    return tuple(list(column) for column in zip(*rows, strict=True))


def _by_id(runs: Sequence[TakeOff]) -> list[TakeOff]:
    return list({run.run_id: run for run in runs}.values())


def _ended(once: Sequence[Settlement], matched: Iterable[Any]) -> list[Ended]:
    writes = {write.run_id: write for write in once}
    return [
        Ended(RunId(run_id), JobId(job_id), Outcome(outcome), writes[run_id].ended_ms)
        for run_id, job_id, outcome in sorted(matched)
    ]
