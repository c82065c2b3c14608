"""MySQL and MariaDB: how runs end of which there is no result."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.domain.writes import Cancelled, Ended, Unanswered, Unsent
from jobwheel.admin.store.dialects.base import end_row, rounds
from jobwheel.admin.store.dialects.mysql_rows import APPENDED, change
from jobwheel.admin.store.zone import InstallationZone

_TO_END = "(phase = 'unconfirmed' OR (phase = 'sending' AND owner = %s))"
_TO_END_OF_OWNER = "(phase = 'sending' AND owner = %s)"
_UNSENT = f"""
log.trigger_msg = {APPENDED}, log.ended_ms = given.ended_ms, log.alarm_status = 1,
log.trigger_code = CASE WHEN log.kill_ms IS NULL THEN given.code ELSE 0 END,
log.handle_code = CASE WHEN log.kill_ms IS NULL THEN log.handle_code ELSE 500 END,
log.outcome = CASE WHEN log.kill_ms IS NULL THEN given.outcome ELSE 'killed' END,
log.phase = NULL, log.owner = NULL, log.check_ms = NULL
"""

_TO_GIVE_UP = "phase IN ('unconfirmed', 'accepted')"
_TO_CANCEL = "(phase = 'pending' OR (phase = 'sending' AND owner = %s))"
_END_NAMES = ("id", "message", "wall_time", "ended_ms")
_END = """
log.handle_code = 500, log.handle_msg = given.message, log.handle_time = given.wall_time, log.ended_ms = given.ended_ms,
log.outcome = CASE WHEN log.kill_ms IS NULL THEN 'lost' ELSE 'killed' END,
log.alarm_status = 1, log.phase = NULL, log.owner = NULL, log.check_ms = NULL
"""
_UNANSWERED = f"{_END}, log.trigger_code = 200"
_CANCELLED = f"{_END}, log.trigger_code = 0"
# Whether a kill was asked for says how a run ends: what a SELECT with this condition finds stays so, since it is held.
_KILLED = "AND kill_ms IS NOT NULL"


class MysqlEnds:
    """The part of `Statements` that ends runs without a result."""

    def end_unsent(self, connection: Connection, node_id: NodeId, writes: Iterable[Unsent]) -> list[Ended]:
        ended = []
        for once in rounds(writes):
            # Of one owner, nearly always.
            for owner in dict.fromkeys(write.owner for write in once):
                condition = (_TO_END, node_id) if owner is None else (_TO_END_OF_OWNER, owner)
                ended += _end_unsent(connection, *condition, [write for write in once if write.owner == owner])
        return ended

    def end_unanswered(
        self, connection: Connection, zone: InstallationZone, writes: Iterable[Unanswered]
    ) -> list[Ended]:
        ended = []
        for once in rounds(writes):
            rows = [end_row(zone, write) for write in once]
            killed = change(connection, (f"{_TO_GIVE_UP} {_KILLED}", ()), _UNANSWERED, _END_NAMES, rows)
            lost = change(connection, (_TO_GIVE_UP, ()), _UNANSWERED, _END_NAMES, rows)
            ended += _ended(once, killed, Outcome.KILLED) + _ended(once, lost, Outcome.LOST)
        return ended

    def cancel(
        self, connection: Connection, zone: InstallationZone, node_id: NodeId, writes: Iterable[Cancelled]
    ) -> list[Ended]:
        ended = []
        for once in rounds(writes):
            rows = [end_row(zone, write) for write in once]
            matched = change(connection, (f"{_TO_CANCEL} {_KILLED}", (node_id,)), _CANCELLED, _END_NAMES, rows)
            ended += _ended(once, matched, Outcome.KILLED)
        return ended


def _end_unsent(connection: Connection, condition: str, owner: NodeId, once: Sequence[Unsent]) -> list[Ended]:
    names = ("id", "message", "code", "outcome", "ended_ms")
    rows = [(write.run_id, write.message, write.code, write.outcome.value, write.ended_ms) for write in once]
    killed = change(connection, (f"{condition} {_KILLED}", (owner,)), _UNSENT, names, rows)
    matched = change(connection, (condition, (owner,)), _UNSENT, names, rows)
    outcomes = {write.run_id: write.outcome for write in once}
    ended = _ended(once, killed, Outcome.KILLED)
    return ended + [each for run_id in matched for each in _ended(once, {run_id: matched[run_id]}, outcomes[run_id])]


def _ended(
    once: Sequence[Unsent] | Sequence[Unanswered] | Sequence[Cancelled],
    matched: Mapping[RunId, JobId],
    outcome: Outcome,
) -> list[Ended]:
    ended_ms = {write.run_id: write.ended_ms for write in once}
    return [Ended(run_id, job_id, outcome, ended_ms[run_id]) for run_id, job_id in matched.items()]
