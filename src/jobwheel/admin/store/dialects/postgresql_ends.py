"""PostgreSQL: how runs end of which there is no result."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.domain.writes import Cancelled, Ended, Unanswered, Unsent
from jobwheel.admin.store.dialects.base import end_row, rounds
from jobwheel.admin.store.zone import InstallationZone

_UNSENT = """
UPDATE xxl_job_log AS log
SET trigger_msg = COALESCE(log.trigger_msg, '') || given.message,
    trigger_code = CASE WHEN log.kill_ms IS NULL THEN given.code ELSE 0 END,
    handle_code = CASE WHEN log.kill_ms IS NULL THEN log.handle_code ELSE 500 END,
    outcome = CASE WHEN log.kill_ms IS NULL THEN given.outcome ELSE 'killed' END,
    ended_ms = given.ended_ms, alarm_status = 1, phase = NULL, owner = NULL, check_ms = NULL
FROM unnest($1::bigint[], $2::text[], $3::int[], $4::text[], $5::bigint[], $6::bigint[])
     AS given(id, message, code, outcome, ended_ms, owner)
WHERE log.id = given.id
  AND ((log.phase || '' = 'unconfirmed' AND given.owner IS NULL)
       OR (log.phase || '' = 'sending' AND log.owner + 0 = COALESCE(given.owner, $7)))
RETURNING log.id, log.job_id, log.outcome
"""

_END = """
SET handle_code = 500, handle_msg = given.message, handle_time = given.wall_time::timestamp,
    ended_ms = given.ended_ms, alarm_status = 1, phase = NULL, owner = NULL, check_ms = NULL,
    outcome = CASE WHEN log.kill_ms IS NULL THEN 'lost' ELSE 'killed' END
"""
_ENDS = "unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) AS given(id, message, wall_time, ended_ms)"

_UNANSWERED = f"""
UPDATE xxl_job_log AS log {_END}, trigger_code = 200 FROM {_ENDS}
WHERE log.id = given.id AND log.phase || '' IN ('unconfirmed', 'accepted')
RETURNING log.id, log.job_id, log.outcome
"""

_CANCELLED = f"""
UPDATE xxl_job_log AS log {_END}, trigger_code = 0 FROM {_ENDS}
WHERE log.id = given.id AND log.kill_ms IS NOT NULL
  AND (log.phase || '' = 'pending' OR (log.phase || '' = 'sending' AND log.owner + 0 = $5))
RETURNING log.id, log.job_id, log.outcome
"""


class PostgresqlEnds:
    """The part of `Statements` that ends runs without a result."""

    def end_unsent(self, connection: Connection, node_id: NodeId, writes: Iterable[Unsent]) -> list[Ended]:
        ended = []
        for once in rounds(writes):
            rows = [
                (write.run_id, write.message, write.code, write.outcome.value, write.ended_ms, write.owner)
                for write in once
            ]
            matched = connection.exec_driver_sql(_UNSENT, (*as_columns(rows), node_id))
            ended += _ended_unsent(once, matched)
        return ended

    def end_unanswered(
        self, connection: Connection, zone: InstallationZone, writes: Iterable[Unanswered]
    ) -> list[Ended]:
        ended = []
        for once in rounds(writes):
            columns = as_columns([end_row(zone, write) for write in once])
            ended += _ended_unsent(once, connection.exec_driver_sql(_UNANSWERED, columns))
        return ended

    def cancel(
        self, connection: Connection, zone: InstallationZone, node_id: NodeId, writes: Iterable[Cancelled]
    ) -> list[Ended]:
        ended = []
        for once in rounds(writes):
            columns = as_columns([end_row(zone, write) for write in once])
            ended += _ended_unsent(once, connection.exec_driver_sql(_CANCELLED, (*columns, node_id)))
        return ended


def as_columns(rows: Sequence[tuple[Any, ...]]) -> tuple[list[Any], ...]:
    """The rows as one array for each column."""
    return tuple(list(column) for column in zip(*rows, strict=True))


def _ended_unsent(
    once: Sequence[Unsent] | Sequence[Unanswered] | Sequence[Cancelled], matched: Iterable[Any]
) -> list[Ended]:
    ended_ms = {write.run_id: write.ended_ms for write in once}
    return [
        Ended(RunId(run_id), JobId(job_id), Outcome(outcome), ended_ms[run_id])
        for run_id, job_id, outcome in sorted(matched)
    ]
