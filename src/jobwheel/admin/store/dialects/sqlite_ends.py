"""SQLite: how runs end of which there is no result."""

import sqlite3
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection

from jobwheel.admin.domain.ids import JobId, NodeId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.domain.writes import Cancelled, Ended, Unanswered, Unsent
from jobwheel.admin.store.dialects.base import end_row
from jobwheel.admin.store.dialects.sqlite_rows import cursor_of
from jobwheel.admin.store.zone import InstallationZone

_UNSENT = """
UPDATE xxl_job_log
SET trigger_msg = COALESCE(trigger_msg, '') || ?, ended_ms = ?, alarm_status = 1,
    trigger_code = CASE WHEN kill_ms IS NULL THEN ? ELSE 0 END,
    handle_code = CASE WHEN kill_ms IS NULL THEN handle_code ELSE 500 END,
    outcome = CASE WHEN kill_ms IS NULL THEN ? ELSE 'killed' END,
    phase = NULL, owner = NULL, check_ms = NULL
WHERE id = ? AND ((phase = 'unconfirmed' AND ? IS NULL) OR (phase = 'sending' AND owner = ?))
RETURNING job_id, outcome
"""

_END = """
SET handle_code = 500, handle_msg = ?, handle_time = ?, ended_ms = ?, alarm_status = 1,
    outcome = CASE WHEN kill_ms IS NULL THEN 'lost' ELSE 'killed' END, phase = NULL, owner = NULL, check_ms = NULL
"""

_UNANSWERED = f"""
UPDATE xxl_job_log {_END}, trigger_code = 200
WHERE id = ? AND +phase IN ('unconfirmed', 'accepted')
RETURNING job_id, outcome
"""

_CANCELLED = f"""
UPDATE xxl_job_log {_END}, trigger_code = 0
WHERE id = ? AND +kill_ms IS NOT NULL AND (+phase = 'pending' OR (+phase = 'sending' AND +owner = ?))
RETURNING job_id, outcome
"""


class SqliteEnds:
    """The part of `Statements` that ends runs without a result. There are few: each is a statement of its own."""

    def end_unsent(self, connection: Connection, node_id: NodeId, writes: Iterable[Unsent]) -> list[Ended]:
        cursor = cursor_of(connection)
        ended = []
        for write in writes:
            row = (write.message, write.ended_ms, write.code, write.outcome, write.run_id)
            owner = node_id if write.owner is None else write.owner
            ended += _matched(cursor, _UNSENT, (*row, write.owner, owner), write)
        return ended

    def end_unanswered(
        self, connection: Connection, zone: InstallationZone, writes: Iterable[Unanswered]
    ) -> list[Ended]:
        cursor = cursor_of(connection)
        ended = []
        for write in writes:
            run_id, *values = end_row(zone, write)
            ended += _matched(cursor, _UNANSWERED, (*values, run_id), write)
        return ended

    def cancel(
        self, connection: Connection, zone: InstallationZone, node_id: NodeId, writes: Iterable[Cancelled]
    ) -> list[Ended]:
        cursor = cursor_of(connection)
        ended = []
        for write in writes:
            run_id, *values = end_row(zone, write)
            ended += _matched(cursor, _CANCELLED, (*values, run_id, node_id), write)
        return ended


def _matched(
    cursor: sqlite3.Cursor, statement: str, values: tuple[Any, ...], write: Unsent | Unanswered | Cancelled
) -> list[Ended]:
    return [
        Ended(write.run_id, JobId(job_id), Outcome(outcome), write.ended_ms)
        for job_id, outcome in cursor.execute(statement, values).fetchall()
    ]
