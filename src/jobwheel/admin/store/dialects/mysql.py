"""MySQL and MariaDB: one statement for a whole batch; `mysql_rows` says how."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import CHAR, ColumnElement, Connection, Select, Table, bindparam, cast, func
from sqlalchemy.dialects.mysql import insert
from sqlalchemy.exc import DBAPIError

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import NewRun, Outcome
from jobwheel.admin.domain.writes import Accepted, Ended, Settlement, TakeOff, Unconfirmed
from jobwheel.admin.store.dialects.base import Move, accept_row, effective_outcome, rounds, run_rows, settle_row
from jobwheel.admin.store.dialects.mysql_ends import MysqlEnds
from jobwheel.admin.store.dialects.mysql_rows import APPENDED, cut, flat, given, lock_runs, marks, update_runs
from jobwheel.admin.store.dialects.planner import KnowsItsTables
from jobwheel.admin.store.errors import DatabaseAwayError, ScheduleLockedError
from jobwheel.admin.store.tables import SCHEDULE_LOCK
from jobwheel.admin.store.trouble import code_of
from jobwheel.admin.store.zone import InstallationZone

_LOCKED = frozenset({1205, 3572})
"""NOWAIT: MariaDB says "lock wait timeout", MySQL has a number of its own."""
_SCHEMA_LOCK_S = 60

_OWN_DUE = """
SELECT id FROM xxl_job_log WHERE phase = 'pending' AND owner = %s AND due_ms <= %s ORDER BY due_ms LIMIT %s
"""

_OWN_DUE_OF_OTHERS = """
SELECT id FROM xxl_job_log
WHERE phase = 'pending' AND owner = %s AND due_ms <= %s AND NOT JSON_CONTAINS(%s, CAST(job_id AS CHAR))
ORDER BY due_ms LIMIT %s
"""

_REDIRECT = """
UPDATE xxl_job_log FORCE INDEX (PRIMARY) SET executor_address = %s, instance_id = %s
WHERE id = %s AND phase = 'sending' AND owner = %s AND executor_address = %s AND kill_ms IS NULL
"""

_OWN_PENDING = "phase = 'pending' AND owner = %s AND kill_ms IS NULL"
_TAKE_OFF = """
log.phase = 'sending', log.executor_address = given.address, log.executor_handler = given.handler,
log.route = given.route, log.instance_id = given.instance_id, log.sent_ms = given.sent_ms
"""

# A write that comes after the result finds the run done and adds only message and times. A run that is to be killed is
# looked at now. The phase comes last: MySQL may read what it has just written.
_TO_ACCEPT = """
(log.phase = 'unconfirmed' OR (log.phase = 'sending' AND log.owner = %s)
 OR (log.phase IS NULL AND log.outcome <> 'lost' AND log.accepted_ms IS NULL AND log.trigger_code = 200))
"""
_ACCEPTED = f"""
log.trigger_msg = {APPENDED}, log.accepted_ms = COALESCE(log.accepted_ms, given.accepted_ms),
log.instance_id = COALESCE(given.instance_id, log.instance_id), log.owner = NULL,
log.unheard_ms = given.heard_ms, log.idle_answers = 0,
log.check_ms = CASE WHEN log.phase IS NULL THEN NULL ELSE COALESCE(log.kill_ms, given.check_ms) END,
log.phase = CASE WHEN log.phase IS NULL THEN NULL ELSE 'accepted' END
"""

_TO_DOUBT = """
((log.phase = 'sending' AND log.owner = %s)
 OR (log.phase IS NULL AND log.outcome <> 'lost' AND log.accepted_ms IS NULL AND log.unheard_ms IS NULL
     AND log.trigger_code = 200))
"""
# The phase comes last: MySQL may read what it has just written.
_UNCONFIRMED = f"""
log.trigger_msg = {APPENDED}, log.owner = NULL, log.unheard_ms = given.since_ms,
log.check_ms = CASE WHEN log.phase IS NULL THEN NULL ELSE COALESCE(log.kill_ms, given.check_ms) END,
log.phase = CASE WHEN log.phase IS NULL THEN NULL ELSE 'unconfirmed' END
"""

# The last condition is of a Java admin's running row: it has no phase, and its codes say that it still runs.
_OPEN_TO_A_RESULT = """
(phase IN ('sending', 'unconfirmed', 'accepted') OR outcome = 'lost'
 OR (phase IS NULL AND outcome IS NULL AND trigger_code IN (0, 200) AND handle_code = 0))
"""
_SETTLE = f"""
log.trigger_code = 200, log.handle_code = given.code, log.handle_msg = given.result, log.handle_time = given.wall_time,
log.outcome = CASE WHEN log.kill_ms IS NOT NULL AND given.code NOT IN (200, 502) THEN 'killed' ELSE given.outcome END,
log.ended_ms = given.ended_ms, log.alarm_status = CASE WHEN given.code = 200 THEN log.alarm_status ELSE 1 END,
log.trigger_msg = CASE WHEN given.message IS NULL THEN log.trigger_msg ELSE {APPENDED} END,
log.accepted_ms = COALESCE(log.accepted_ms, given.accepted_ms),
log.instance_id = COALESCE(given.instance_id, log.instance_id),
log.phase = NULL, log.owner = NULL, log.check_ms = NULL
"""

# Of the few runs that were lost, before the result takes the place of what is said of that.
_LOST = "CASE WHEN log.handle_msg <> '' THEN CONCAT(log.handle_msg, CHAR(10)) ELSE '' END"
_KEEP_LOST = f"""
log.trigger_msg = LEFT(CONCAT(COALESCE(log.trigger_msg, ''), {_LOST}, given.message), 16000)
"""

# S608 below: the statements are put together from the literals of this file; values are always parameters.
_WAITING = f"""
schedule_type = 'FIX_DELAY' AND trigger_status = 1 AND trigger_next_time = {AWAITING_SETTLEMENT_MS}
"""


class MysqlStatements(KnowsItsTables, MysqlEnds):
    """See `Statements`."""

    is_ddl_transactional = False
    has_partial_indexes = False

    def insert_runs(self, connection: Connection, zone: InstallationZone, runs: Sequence[NewRun]) -> list[RunId]:
        columns, every_row = run_rows(zone, runs)
        names = ", ".join(columns)
        one = f"({', '.join(['%s'] * len(columns))}, 'pending')"
        ids: list[RunId] = []
        for rows in cut(every_row):
            statement = f"INSERT INTO xxl_job_log ({names}, phase) VALUES {', '.join([one] * len(rows))}"  # noqa: S608
            first = connection.exec_driver_sql(statement, flat(rows)).lastrowid
            # The ids of one INSERT … VALUES follow each other; in a cluster of servers they do so in larger steps.
            step = connection.exec_driver_sql("SELECT @@SESSION.auto_increment_increment").scalar_one()
            ids += [RunId(first + step * position) for position in range(len(rows))]
        return ids

    def own_due(
        self, connection: Connection, node_id: NodeId, due_before_ms: int, most: int, without_jobs: Sequence[JobId]
    ) -> list[RunId]:
        if without_jobs:
            jobs = msgspec.json.encode(without_jobs).decode()
            values = (node_id, due_before_ms, jobs, most)
            return list(connection.exec_driver_sql(_OWN_DUE_OF_OTHERS, values).scalars())
        return list(connection.exec_driver_sql(_OWN_DUE, (node_id, due_before_ms, most)).scalars())

    def take_off(self, connection: Connection, node_id: NodeId, sent_ms: int, runs: Sequence[TakeOff]) -> set[RunId]:
        matched: set[RunId] = set()
        names = ("id", "address", "handler", "route", "instance_id", "sent_ms")
        rows = {run.run_id: (run.run_id, run.address, run.handler, run.route, run.instance_id, sent_ms) for run in runs}
        for part in cut(sorted(rows.values())):
            found = lock_runs(connection, [row[0] for row in part], _OWN_PENDING, (node_id,))
            matched |= found.keys()
            update_runs(connection, _TAKE_OFF, names, [row for row in part if row[0] in found])
        return matched

    def redirect(self, connection: Connection, node_id: NodeId, run: TakeOff, from_address: str) -> bool:
        values = (run.address, run.instance_id, run.run_id, node_id, from_address)
        return connection.exec_driver_sql(_REDIRECT, values).rowcount == 1

    def accept(self, connection: Connection, node_id: NodeId, writes: Iterable[Accepted]) -> None:
        names = ("id", "message", "accepted_ms", "instance_id", "heard_ms", "check_ms")
        for once in rounds(writes):
            rows = [accept_row(write) for write in once]
            update_runs(connection, _ACCEPTED, names, rows, (_TO_ACCEPT, (node_id,)))

    def mark_unconfirmed(self, connection: Connection, node_id: NodeId, writes: Iterable[Unconfirmed]) -> None:
        names = ("id", "message", "since_ms", "check_ms")
        for once in rounds(writes):
            rows = [(write.run_id, write.message, write.since_ms, write.check_ms) for write in once]
            update_runs(connection, _UNCONFIRMED, names, rows, (_TO_DOUBT, (node_id,)))

    def settle(
        self, connection: Connection, zone: InstallationZone, writes: Iterable[Settlement], late: str
    ) -> list[Ended]:
        names = ("id", "code", "result", "wall_time", "outcome", "ended_ms", "message", "accepted_ms", "instance_id")
        ended: list[Ended] = []
        for once in rounds(writes):
            by_id = {write.run_id: write for write in once}
            for part in cut([settle_row(zone, write) for write in once]):
                locked = lock_runs(connection, [row[0] for row in part], _OPEN_TO_A_RESULT, ())
                found = {
                    run_id: Ended(run_id, run.job_id, effective_outcome(write, run.kill_ms), write.ended_ms)
                    for run_id, run in locked.items()
                    if (write := by_id[run_id]).group_id in (None, run.group_id)
                }
                lost = [(run_id, late) for run_id in sorted(found) if locked[run_id].outcome == Outcome.LOST]
                update_runs(connection, _KEEP_LOST, ("id", "message"), lost)
                update_runs(connection, _SETTLE, names, [row[:9] for row in part if row[0] in found])
                ended += found.values()
        return ended

    def move_on(self, connection: Connection, moves: Sequence[Move]) -> set[JobId]:
        matched: set[JobId] = set()
        for part in cut(sorted(moves, key=lambda move: move[0])):
            table, values = given(("id", "read_ms", "read_version", "last_ms", "next_ms", "running"), part)
            source = f"{table} STRAIGHT_JOIN xxl_job_info AS job FORCE INDEX (PRIMARY) ON job.id = given.id"
            still = (
                "job.trigger_status = 1 AND job.trigger_next_time = given.read_ms AND job.version = given.read_version"
            )
            query = f"SELECT job.id FROM {source} WHERE {still} FOR UPDATE"  # noqa: S608
            matched.update(connection.exec_driver_sql(query, values).scalars())
            connection.exec_driver_sql(
                f"UPDATE {source} SET job.trigger_last_time = COALESCE(given.last_ms, job.trigger_last_time), "  # noqa: S608
                f"job.trigger_next_time = given.next_ms, job.trigger_status = given.running WHERE {still}",
                values,
            )
        return matched

    def reschedule_fix_delay(self, connection: Connection, ends: Mapping[JobId, int]) -> bool:
        waiting = self._waiting(connection, list(ends))
        if not waiting:
            return False
        query = f"SELECT DISTINCT job_id FROM xxl_job_log WHERE job_id IN {marks(waiting)} AND phase IS NOT NULL"  # noqa: S608
        still_open = set(connection.exec_driver_sql(query, tuple(waiting)).scalars())
        rows = [(job_id, ends[job_id] + delay_ms) for job_id, delay_ms in waiting.items() if job_id not in still_open]
        for part in cut(rows):
            table, values = given(("id", "next_ms"), part)
            source = f"{table} STRAIGHT_JOIN xxl_job_info AS job FORCE INDEX (PRIMARY) ON job.id = given.id"
            connection.exec_driver_sql(f"UPDATE {source} SET job.trigger_next_time = given.next_ms", values)  # noqa: S608
        return bool(rows)

    def lock_schedule(self, connection: Connection) -> None:
        query = "SELECT 1 FROM xxl_job_lock WHERE lock_name = %s FOR UPDATE NOWAIT"
        try:
            found = connection.exec_driver_sql(query, (SCHEDULE_LOCK,)).first()
        except DBAPIError as error:
            if code_of(error) in _LOCKED:
                raise ScheduleLockedError from error
            raise
        if found is None:
            self.wait_for_lock(connection, SCHEDULE_LOCK)

    def wait_for_lock(self, connection: Connection, name: str) -> None:
        # A row that is there is locked as well.
        statement = "INSERT INTO xxl_job_lock (lock_name) VALUES (%s) ON DUPLICATE KEY UPDATE lock_name = lock_name"
        connection.exec_driver_sql(statement, (name,))

    @contextmanager
    def schema_lock(self, connection: Connection) -> Iterator[None]:
        # A named lock of the whole server, which DDL's own commits leave alone.
        name = "CONCAT('jobwheel.', MD5(DATABASE()))"
        got = connection.exec_driver_sql(f"SELECT GET_LOCK({name}, {_SCHEMA_LOCK_S})").scalar()
        if got != 1:
            raise DatabaseAwayError("(schema)", f"another admin has been changing it for {_SCHEMA_LOCK_S} s")
        try:
            yield
        finally:
            connection.exec_driver_sql(f"SELECT RELEASE_LOCK({name})")

    def by_index(self, query: Select[Any], table: Table, index: str) -> Select[Any]:
        return query.with_hint(table, f"FORCE INDEX ({index})", "mysql")

    def without_index(self, query: Select[Any], table: Table, index: str) -> Select[Any]:
        return query.with_hint(table, f"IGNORE INDEX ({index})", "mysql")

    def all_rows(
        self, connection: Connection, query: Select[Any], parameters: Mapping[str, object]
    ) -> Sequence[Sequence[Any]]:
        return connection.execute(query, parameters).all()

    def among(self, column: ColumnElement[int], name: str) -> ColumnElement[bool]:
        # The driver puts the values into the text anyway.
        return column.in_(bindparam(name, expanding=True))

    def ten_minutes_of(self, column: ColumnElement[datetime]) -> ColumnElement[str]:
        return func.left(cast(column, CHAR), 15)

    def upsert(
        self, connection: Connection, table: Table, key: Mapping[str, object], values: Mapping[str, object]
    ) -> None:
        connection.execute(insert(table).values({**key, **values}).on_duplicate_key_update(dict(values)))

    def upsert_all(
        self, connection: Connection, table: Table, key: Sequence[str], rows: Sequence[Mapping[str, object]]
    ) -> None:
        if rows:
            statement = insert(table)
            values = {name: statement.inserted[name] for name in rows[0] if name not in key}
            connection.execute(statement.on_duplicate_key_update(values), rows)

    def _waiting(self, connection: Connection, job_ids: Sequence[JobId]) -> dict[JobId, int]:
        """Of these jobs those of FIX_DELAY that wait for a run, held, and their delays in milliseconds."""
        if not job_ids:
            return {}
        # CASE: a text that is no number must not make the whole batch fail; the next claim finds the job corrupt.
        delay = "CASE WHEN schedule_conf REGEXP '^[0-9]{1,9}$' THEN CAST(schedule_conf AS SIGNED) ELSE 0 END"
        query = (
            f"SELECT id, 1000 * {delay} FROM xxl_job_info FORCE INDEX (PRIMARY) WHERE id IN {marks(job_ids)} "  # noqa: S608
            f"AND {_WAITING} ORDER BY id FOR UPDATE"
        )
        rows = connection.exec_driver_sql(query, tuple(job_ids))
        return {JobId(job_id): int(delay_ms) for job_id, delay_ms in rows}


def _ended(once: Sequence[Settlement], matched: Mapping[RunId, JobId]) -> list[Ended]:
    writes = {write.run_id: write for write in once}
    return [
        Ended(run_id, job_id, writes[run_id].outcome, writes[run_id].ended_ms) for run_id, job_id in matched.items()
    ]
