"""Looks for open runs that are late, long or too many, and for jobs that succeed again."""

from typing import Final

from jobwheel.admin.store import Connection
from jobwheel.admin.store.alarm_backlogs import look_for_backlogs, note_backlogs
from jobwheel.admin.store.alarm_outbox import hold_alarms
from jobwheel.admin.store.alarm_watch import (
    forget_noted,
    has_recovered,
    late_runs,
    long_runs,
    note_recovered,
    note_runs,
)
from jobwheel.admin.store.database import Database

LOOK_EVERY_S: Final = 5.0

_AT_ONCE: Final = 200
_KEPT_MS: Final = 3600_000
_FORGET_EVERY_MS: Final = 600_000


class AlarmWatch:
    """Notes what should be told of runs that have not ended, once each. Any node does it, one at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._forgot_ms = 0

    async def run_once(self) -> int:
        """Note what is there to be told; says how much."""
        now_ms = self._database.now_ms()
        noted = 0
        # Looked first: nobody waits for the lock when there is nothing, as nearly always.
        while await self._database.read(_has_open, now_ms):
            noted += await self._database.write(_note_open, now_ms)
        if await self._database.read(look_for_backlogs, now_ms):
            noted += await self._database.write(_note_backlogs, now_ms)
        if await self._database.read(has_recovered):
            noted += await self._database.write(_note_recovered)
        if now_ms - self._forgot_ms >= _FORGET_EVERY_MS:
            await self._database.write(forget_noted, now_ms - _KEPT_MS)
            self._forgot_ms = now_ms
        return noted


def _has_open(connection: Connection, now_ms: int) -> bool:
    return bool(late_runs(connection, now_ms, 1) or long_runs(connection, now_ms, 1))


def _note_open(connection: Connection, now_ms: int) -> int:
    hold_alarms(connection)
    notices = [*late_runs(connection, now_ms, _AT_ONCE), *long_runs(connection, now_ms, _AT_ONCE)]
    note_runs(connection, notices, now_ms)
    return len(notices)


def _note_backlogs(connection: Connection, now_ms: int) -> int:
    hold_alarms(connection)
    backlogs = look_for_backlogs(connection, now_ms)
    note_backlogs(connection, backlogs)
    return len(backlogs.begun)


def _note_recovered(connection: Connection) -> int:
    hold_alarms(connection)
    return note_recovered(connection)
