"""SQLite: one writer, so a loop of prepared statements is the fastest batch; each tells whether its row matched."""

import functools
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from sqlalchemy import Connection

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import NewRun
from jobwheel.admin.domain.writes import Accepted, Ended, Settlement, TakeOff, Unconfirmed, Unsent
from jobwheel.admin.store.zone import InstallationZone

End = TypeVar("End", Unsent, Settlement)

_INSERT_RUN = """
INSERT INTO xxl_job_log (id, job_group, job_id, executor_param, trigger_time, planned_ms, due_ms, triggered_ms,
                         trigger_type, owner, attempt, named_addresses, phase)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')
"""

_TAKE_OFF = """
UPDATE xxl_job_log
SET phase = 'sending', executor_address = ?, executor_handler = ?, route = ?, instance_id = ?, sent_ms = ?
WHERE id = ? AND phase = 'pending' AND owner = ?
"""

_REDIRECT = """
UPDATE xxl_job_log SET executor_address = ?, instance_id = ?
WHERE id = ? AND phase = 'sending' AND owner = ? AND executor_address = ?
"""

# A write that comes after the result finds the run done and adds only message and times.
_ACCEPTED = """
UPDATE xxl_job_log
SET trigger_msg = COALESCE(trigger_msg, '') || ?, accepted_ms = COALESCE(accepted_ms, ?),
    instance_id = COALESCE(?, instance_id),
    phase = CASE WHEN phase IS NULL THEN NULL ELSE 'accepted' END, owner = NULL, check_ms = NULL
WHERE id = ? AND (phase = 'unconfirmed' OR (phase = 'sending' AND owner = ?)
                  OR (phase IS NULL AND outcome <> 'lost' AND accepted_ms IS NULL AND trigger_code = 200))
"""

_UNSENT = """
UPDATE xxl_job_log
SET trigger_msg = COALESCE(trigger_msg, '') || ?, trigger_code = ?, outcome = ?, ended_ms = ?, alarm_status = 1,
    phase = NULL, owner = NULL, check_ms = NULL
WHERE id = ? AND (phase = 'unconfirmed' OR (phase = 'sending' AND owner = ?))
RETURNING job_id
"""

_UNCONFIRMED = """
UPDATE xxl_job_log
SET trigger_msg = COALESCE(trigger_msg, '') || ?, owner = NULL, unheard_ms = ?,
    phase = CASE WHEN phase IS NULL THEN NULL ELSE 'unconfirmed' END,
    check_ms = CASE WHEN phase IS NULL THEN NULL ELSE ? END
WHERE id = ? AND ((phase = 'sending' AND owner = ?)
                  OR (phase IS NULL AND outcome <> 'lost' AND trigger_msg IS NULL AND trigger_code = 200))
"""

# The last line is a Java admin's running row: it has no phase, and its codes say that it still runs.
_SETTLE = """
UPDATE xxl_job_log
SET trigger_code = 200, handle_code = ?, handle_msg = ?, handle_time = ?, outcome = ?, ended_ms = ?,
    alarm_status = CASE WHEN ? THEN alarm_status ELSE 1 END, phase = NULL, owner = NULL, check_ms = NULL
WHERE id = ? AND (? IS NULL OR job_group = ?)
  AND (phase IN ('sending', 'unconfirmed', 'accepted') OR outcome = 'lost'
       OR (phase IS NULL AND outcome IS NULL AND trigger_code IN (0, 200) AND handle_code = 0))
RETURNING job_id
"""

_MOVE_ON = """
UPDATE xxl_job_info
SET trigger_last_time = COALESCE(?, trigger_last_time), trigger_next_time = ?, trigger_status = ?
WHERE id = ? AND trigger_status = 1 AND trigger_next_time = ?
"""

_RESCHEDULE_FIX_DELAY = """
UPDATE xxl_job_info SET trigger_next_time = ? + 1000 * CAST(schedule_conf AS INTEGER)
WHERE id = ? AND schedule_type = 'FIX_DELAY' AND trigger_status = 1 AND trigger_next_time = ?
  AND NOT EXISTS (SELECT 1 FROM xxl_job_log WHERE job_id = xxl_job_info.id AND phase IS NOT NULL)
"""


class SqliteStatements:
    """The hot statements. Each method runs inside the caller's writing transaction."""

    def insert_runs(self, connection: Connection, zone: InstallationZone, runs: Sequence[NewRun]) -> list[RunId]:
        """Write pending runs; return their ids in the order of `runs`."""
        cursor = _cursor(connection)
        row = cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = 'xxl_job_log'").fetchone()
        # The transaction holds the write lock, so the ids that follow the sequence are free; giving them out here
        # lets one executemany write all rows.
        first = (row[0] if row else 0) + 1
        cursor.executemany(_INSERT_RUN, (_run_row(first + n, zone, run) for n, run in enumerate(runs)))
        return [RunId(first + n) for n in range(len(runs))]

    def take_off(self, connection: Connection, node_id: NodeId, sent_ms: int, runs: Sequence[TakeOff]) -> set[RunId]:
        """Pending → sending; return the runs that matched: the others are not this node's any more, or are gone."""
        cursor = _cursor(connection)
        matched = set()
        for run in runs:
            cursor.execute(
                _TAKE_OFF, (run.address, run.handler, run.route, run.instance_id, sent_ms, run.run_id, node_id)
            )
            if cursor.rowcount == 1:
                matched.add(run.run_id)
        return matched

    def redirect(self, connection: Connection, node_id: NodeId, run: TakeOff, from_address: str) -> bool:
        """Give a run being sent another address; False if it is not this node's any more."""
        cursor = _cursor(connection)
        cursor.execute(_REDIRECT, (run.address, run.instance_id, run.run_id, node_id, from_address))
        return cursor.rowcount == 1

    def accept(self, connection: Connection, node_id: NodeId, writes: Iterable[Accepted]) -> None:
        _cursor(connection).executemany(
            _ACCEPTED,
            [(write.message, write.accepted_ms, write.instance_id, write.run_id, node_id) for write in writes],
        )

    def end_unsent(self, connection: Connection, node_id: NodeId, writes: Iterable[Unsent]) -> list[Ended]:
        """End runs without a result; return those that matched."""
        return _matched(
            connection,
            _UNSENT,
            writes,
            lambda write: (write.message, write.code, write.outcome, write.ended_ms, write.run_id, node_id),
        )

    def mark_unconfirmed(self, connection: Connection, node_id: NodeId, writes: Iterable[Unconfirmed]) -> None:
        _cursor(connection).executemany(
            _UNCONFIRMED,
            [(write.message, write.since_ms, write.check_ms, write.run_id, node_id) for write in writes],
        )

    def settle(self, connection: Connection, zone: InstallationZone, writes: Iterable[Settlement]) -> list[Ended]:
        """Write results; return the runs that matched. The first result wins; one replaces "lost"."""
        return _matched(connection, _SETTLE, writes, functools.partial(_settle_row, zone))

    def move_on(self, connection: Connection, moves: Iterable[tuple[JobId, int, int | None, int, bool]]) -> set[JobId]:
        """Give jobs their next times: (job, next time it was read with, last, next, running); return the matched.

        Without a last time the job keeps the one that it has.
        """
        cursor = _cursor(connection)
        matched = set()
        for job_id, read_ms, last_ms, next_ms, running in moves:
            cursor.execute(_MOVE_ON, (last_ms, next_ms, int(running), job_id, read_ms))
            if cursor.rowcount == 1:
                matched.add(job_id)
        return matched

    def reschedule_fix_delay(self, connection: Connection, ends: Mapping[JobId, int]) -> bool:
        """Give FIX_DELAY jobs without an open run their next time; whether there was one (`behaviour.md`).

        `ends` says when the last run of each job ended.
        """
        cursor = _cursor(connection)
        changed = 0
        for job_id, ended_ms in sorted(ends.items()):
            cursor.execute(_RESCHEDULE_FIX_DELAY, (ended_ms, job_id, AWAITING_SETTLEMENT_MS))
            changed += cursor.rowcount
        return changed > 0


def _cursor(connection: Connection) -> sqlite3.Cursor:
    return cast("sqlite3.Cursor", connection.connection.cursor())


def _run_row(run_id: int, zone: InstallationZone, run: NewRun) -> tuple[Any, ...]:
    return (
        run_id,
        run.group_id,
        run.job_id,
        run.parameter,
        zone.to_wall_text(run.triggered_ms),
        run.planned_ms,
        run.due_ms,
        run.triggered_ms,
        run.trigger_type,
        run.owner,
        run.attempt,
        ",".join(run.named_addresses) or None,
    )


def _settle_row(zone: InstallationZone, write: Settlement) -> tuple[Any, ...]:
    succeeded = write.code == 200
    wall = zone.to_wall_text(write.ended_ms)
    return (
        write.code,
        write.message,
        wall,
        write.outcome,
        write.ended_ms,
        succeeded,
        write.run_id,
        write.group_id,
        write.group_id,
    )


def _matched(
    connection: Connection, statement: str, writes: Iterable[End], row_of: Callable[[End], tuple[Any, ...]]
) -> list[Ended]:
    cursor = _cursor(connection)
    ended = []
    for write in writes:
        for (job_id,) in cursor.execute(statement, row_of(write)).fetchall():
            ended.append(Ended(JobId(job_id), write.outcome, write.ended_ms))
    return ended
