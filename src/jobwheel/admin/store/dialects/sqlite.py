"""SQLite: one statement for a whole batch, whose rows come in as one JSON text and whose matches go out as one.

The driver gives up the interpreter's lock around each step of a statement, and waits to get it back while the event
loop is busy; a loop of small statements spends most of its time in that wait. There is one writer, and its transaction
has the write lock since it began, so what a SELECT finds is what the UPDATE after it changes. A `+` before a column
keeps the planner from an index on it: each row is looked up by its id.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, String, Table, func, text, type_coerce
from sqlalchemy.dialects.sqlite import insert

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import NewRun
from jobwheel.admin.domain.writes import Accepted, Ended, Settlement, TakeOff, Unconfirmed
from jobwheel.admin.store.dialects.base import (
    PRIMARY_KEY,
    Move,
    accept_row,
    effective_outcome,
    rounds,
    run_rows,
    settle_row,
)
from jobwheel.admin.store.dialects.on_conflict import OnConflict
from jobwheel.admin.store.dialects.planner import KnowsItsTables
from jobwheel.admin.store.dialects.sqlite_ends import SqliteEnds
from jobwheel.admin.store.dialects.sqlite_rows import all_rows, as_json, cursor_of, found_by, insert_of
from jobwheel.admin.store.tables import SCHEDULE_LOCK
from jobwheel.admin.store.zone import InstallationZone

_OWN_DUE = """
SELECT json_group_array(id) FROM (
    SELECT id FROM xxl_job_log WHERE phase = 'pending' AND owner = ? AND due_ms <= ? ORDER BY due_ms LIMIT ?)
"""

_OWN_DUE_OF_OTHERS = """
SELECT json_group_array(id) FROM (
    SELECT id FROM xxl_job_log WHERE phase = 'pending' AND owner = ? AND due_ms <= ?
      AND +job_id NOT IN (SELECT value FROM json_each(?)) ORDER BY due_ms LIMIT ?)
"""

_OWN_PENDING = """
SELECT json_group_array(log.id) FROM json_each(?) AS given JOIN xxl_job_log AS log ON log.id = given.value
WHERE +log.phase = 'pending' AND +log.owner = ? AND +log.kill_ms IS NULL
"""

_TAKE_OFF = """
UPDATE xxl_job_log
SET phase = 'sending', executor_address = given.address, executor_handler = given.handler, route = given.route,
    instance_id = given.instance_id, sent_ms = ?
FROM (SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS address,
             json_extract(value, '$[2]') AS handler, json_extract(value, '$[3]') AS route,
             json_extract(value, '$[4]') AS instance_id FROM json_each(?)) AS given
WHERE xxl_job_log.id = given.id AND +phase = 'pending' AND +owner = ? AND +kill_ms IS NULL
"""

_REDIRECT = """
UPDATE xxl_job_log SET executor_address = ?, instance_id = ?
WHERE id = ? AND phase = 'sending' AND owner = ? AND executor_address = ? AND kill_ms IS NULL
"""

# A write that comes after the result finds the run done and adds only message and times. A run that is to be killed is
# looked at now.
_ACCEPTED = """
UPDATE xxl_job_log
SET trigger_msg = COALESCE(trigger_msg, '') || given.message,
    accepted_ms = COALESCE(xxl_job_log.accepted_ms, given.accepted_ms),
    instance_id = COALESCE(given.instance_id, xxl_job_log.instance_id),
    phase = CASE WHEN phase IS NULL THEN NULL ELSE 'accepted' END, owner = NULL,
    unheard_ms = given.heard_ms, idle_answers = 0,
    check_ms = CASE WHEN phase IS NULL THEN NULL ELSE COALESCE(kill_ms, given.check_ms) END
FROM (SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS message,
             json_extract(value, '$[2]') AS accepted_ms, json_extract(value, '$[3]') AS instance_id,
             json_extract(value, '$[4]') AS heard_ms, json_extract(value, '$[5]') AS check_ms
      FROM json_each(?)) AS given
WHERE xxl_job_log.id = given.id
  AND (+phase = 'unconfirmed' OR (+phase = 'sending' AND +owner = ?)
       OR (+phase IS NULL AND +outcome <> 'lost' AND xxl_job_log.accepted_ms IS NULL AND +trigger_code = 200))
"""

_UNCONFIRMED = """
UPDATE xxl_job_log
SET trigger_msg = COALESCE(trigger_msg, '') || ?, owner = NULL, unheard_ms = ?,
    phase = CASE WHEN phase IS NULL THEN NULL ELSE 'unconfirmed' END,
    check_ms = CASE WHEN phase IS NULL THEN NULL ELSE COALESCE(kill_ms, ?) END
WHERE id = ? AND ((phase = 'sending' AND owner = ?)
                  OR (phase IS NULL AND outcome <> 'lost' AND accepted_ms IS NULL AND unheard_ms IS NULL
                      AND trigger_code = 200))
"""

# The last line is a Java admin's running row: it has no phase, and its codes say that it still runs.
_OPEN_TO_A_RESULT = """
(given.job_group IS NULL OR +log.job_group = given.job_group)
AND (+log.phase IN ('sending', 'unconfirmed', 'accepted') OR +log.outcome = 'lost'
     OR (+log.phase IS NULL AND +log.outcome IS NULL AND +log.trigger_code IN (0, 200) AND +log.handle_code = 0))
"""

# S608: both are put together from the literals of this file alone.
_SETTLED = f"""
SELECT json_group_array(json_array(given.position, log.job_id, log.kill_ms))
FROM (SELECT key AS position, json_extract(value, '$[0]') AS id, json_extract(value, '$[9]') AS job_group
      FROM json_each(?)) AS given
JOIN xxl_job_log AS log ON log.id = given.id
WHERE {_OPEN_TO_A_RESULT}
"""  # noqa: S608

_SETTLE = f"""
UPDATE xxl_job_log AS log
SET trigger_code = 200, handle_code = given.code, handle_msg = given.message, handle_time = given.wall_time,
    outcome = CASE WHEN log.kill_ms IS NOT NULL AND given.code NOT IN (200, 502) THEN 'killed' ELSE given.outcome END,
    ended_ms = given.ended_ms,
    alarm_status = CASE WHEN given.code = 200 THEN log.alarm_status ELSE 1 END,
    trigger_msg = CASE
        WHEN log.outcome = 'lost' THEN COALESCE(log.trigger_msg, '')
            || CASE WHEN log.handle_msg <> '' THEN log.handle_msg || char(10) ELSE '' END || ?
            || COALESCE(given.dispatch, '')
        WHEN given.dispatch IS NULL THEN log.trigger_msg
        ELSE COALESCE(log.trigger_msg, '') || given.dispatch END,
    accepted_ms = COALESCE(log.accepted_ms, given.accepted_ms),
    instance_id = COALESCE(given.instance_id, log.instance_id),
    phase = NULL, owner = NULL, check_ms = NULL
FROM (SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS code,
             json_extract(value, '$[2]') AS message, json_extract(value, '$[3]') AS wall_time,
             json_extract(value, '$[4]') AS outcome, json_extract(value, '$[5]') AS ended_ms,
             json_extract(value, '$[6]') AS dispatch,
             json_extract(value, '$[7]') AS accepted_ms, json_extract(value, '$[8]') AS instance_id,
             json_extract(value, '$[9]') AS job_group FROM json_each(?)) AS given
WHERE log.id = given.id AND {_OPEN_TO_A_RESULT}
"""  # noqa: S608

_STILL_DUE = """
SELECT json_group_array(job.id)
FROM json_each(?) AS given JOIN xxl_job_info AS job ON job.id = json_extract(given.value, '$[0]')
WHERE +job.trigger_status = 1
  AND (+job.trigger_next_time = json_extract(given.value, '$[1]') OR typeof(job.trigger_next_time) <> 'integer')
  AND (job.version = json_extract(given.value, '$[2]') OR typeof(job.version) <> 'integer')
"""

_MOVE_ON = """
UPDATE xxl_job_info
SET trigger_last_time = COALESCE(given.last_ms, trigger_last_time), trigger_next_time = given.next_ms,
    trigger_status = given.running
FROM (SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS read_ms,
             json_extract(value, '$[2]') AS read_version, json_extract(value, '$[3]') AS last_ms,
             json_extract(value, '$[4]') AS next_ms, json_extract(value, '$[5]') AS running FROM json_each(?)) AS given
WHERE xxl_job_info.id = given.id AND +trigger_status = 1
  AND (+trigger_next_time = given.read_ms OR typeof(trigger_next_time) <> 'integer')
  AND (version = given.read_version OR typeof(version) <> 'integer')
"""

_RESCHEDULE_FIX_DELAY = """
UPDATE xxl_job_info SET trigger_next_time = ? + 1000 * CAST(schedule_conf AS INTEGER)
WHERE id = ? AND schedule_type = 'FIX_DELAY' AND trigger_status = 1 AND trigger_next_time = ?
  AND NOT EXISTS (SELECT 1 FROM xxl_job_log WHERE job_id = xxl_job_info.id AND phase IS NOT NULL)
"""


class SqliteStatements(OnConflict, KnowsItsTables, SqliteEnds):
    """See `Statements`."""

    is_ddl_transactional = True
    insert_into = staticmethod(insert)

    def insert_runs(self, connection: Connection, zone: InstallationZone, runs: Sequence[NewRun]) -> list[RunId]:
        cursor = cursor_of(connection)
        row = cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = 'xxl_job_log'").fetchone()
        # The transaction holds the write lock, so the ids that follow the sequence are free.
        first = (row[0] if row else 0) + 1
        columns, rows = run_rows(zone, runs)
        cursor.execute(insert_of(columns), (first, as_json(rows)))
        return [RunId(run_id) for run_id in range(first, first + len(runs))]

    def own_due(
        self, connection: Connection, node_id: NodeId, due_before_ms: int, most: int, without_jobs: Sequence[JobId]
    ) -> list[RunId]:
        cursor = cursor_of(connection)
        if without_jobs:
            ids: list[RunId] = found_by(
                cursor, _OWN_DUE_OF_OTHERS, (node_id, due_before_ms, as_json(without_jobs), most)
            )
        else:
            ids = found_by(cursor, _OWN_DUE, (node_id, due_before_ms, most))
        return ids

    def take_off(self, connection: Connection, node_id: NodeId, sent_ms: int, runs: Sequence[TakeOff]) -> set[RunId]:
        cursor = cursor_of(connection)
        matched = found_by(cursor, _OWN_PENDING, (as_json([run.run_id for run in runs]), node_id))
        rows = [(run.run_id, run.address, run.handler, run.route, run.instance_id) for run in runs]
        cursor.execute(_TAKE_OFF, (sent_ms, as_json(rows), node_id))
        return set(matched)

    def redirect(self, connection: Connection, node_id: NodeId, run: TakeOff, from_address: str) -> bool:
        cursor = cursor_of(connection)
        cursor.execute(_REDIRECT, (run.address, run.instance_id, run.run_id, node_id, from_address))
        return cursor.rowcount == 1

    def accept(self, connection: Connection, node_id: NodeId, writes: Iterable[Accepted]) -> None:
        for once in rounds(writes):
            rows = [accept_row(write) for write in once]
            cursor_of(connection).execute(_ACCEPTED, (as_json(rows), node_id))

    def mark_unconfirmed(self, connection: Connection, node_id: NodeId, writes: Iterable[Unconfirmed]) -> None:
        cursor_of(connection).executemany(
            _UNCONFIRMED,
            [(write.message, write.since_ms, write.check_ms, write.run_id, node_id) for write in writes],
        )

    def settle(
        self, connection: Connection, zone: InstallationZone, writes: Iterable[Settlement], late: str
    ) -> list[Ended]:
        cursor = cursor_of(connection)
        ended = []
        for once in rounds(writes):
            rows = as_json([settle_row(zone, write) for write in once])
            matched = found_by(cursor, _SETTLED, (rows,))
            cursor.execute(_SETTLE, (late, rows))
            ended += [_ended(once[at], job_id, kill_ms) for at, job_id, kill_ms in matched]
        return ended

    def move_on(self, connection: Connection, moves: Sequence[Move]) -> set[JobId]:
        cursor = cursor_of(connection)
        rows = as_json(moves)
        matched = found_by(cursor, _STILL_DUE, (rows,))
        cursor.execute(_MOVE_ON, (rows,))
        return set(matched)

    def reschedule_fix_delay(self, connection: Connection, ends: Mapping[JobId, int]) -> bool:
        cursor = cursor_of(connection)
        changed = 0
        for job_id, ended_ms in sorted(ends.items()):
            cursor.execute(_RESCHEDULE_FIX_DELAY, (ended_ms, job_id, AWAITING_SETTLEMENT_MS))
            changed += cursor.rowcount
        return changed > 0

    def lock_schedule(self, connection: Connection) -> None:
        self.wait_for_lock(connection, SCHEDULE_LOCK)

    def wait_for_lock(self, connection: Connection, name: str) -> None:
        # The transaction itself is the lock: it has the database's write lock since it began.
        connection.exec_driver_sql("INSERT OR IGNORE INTO xxl_job_lock (lock_name) VALUES (?)", (name,))

    @contextmanager
    def schema_lock(self, connection: Connection) -> Iterator[None]:
        assert connection.in_transaction()
        yield

    def by_index(self, query: Select[Any], table: Table, index: str) -> Select[Any]:
        hint = "NOT INDEXED" if index == PRIMARY_KEY else f"INDEXED BY {index}"
        return query.with_hint(table, hint, "sqlite")

    def all_rows(
        self, connection: Connection, query: Select[Any], parameters: Mapping[str, object]
    ) -> Sequence[Sequence[Any]]:
        return all_rows(connection, query, parameters)

    def among(self, column: ColumnElement[int], name: str) -> ColumnElement[bool]:
        return column.in_(text(f"SELECT value FROM json_each(:{name})"))  # noqa: S608 - the name is the program's

    def ten_minutes_of(self, column: ColumnElement[datetime]) -> ColumnElement[str]:
        return func.substr(type_coerce(column, String), 1, 15)


def _ended(write: Settlement, job_id: int, kill_ms: int | None) -> Ended:
    return Ended(write.run_id, JobId(job_id), effective_outcome(write, kill_ms), write.ended_ms)
