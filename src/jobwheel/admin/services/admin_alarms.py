"""Tells of troubles of this node itself: it plans nothing, or its clock is off."""

import asyncio
import socket
from collections.abc import Coroutine, Sequence
from typing import Final

from jobwheel.admin.alarms.errors import ChannelError
from jobwheel.admin.domain.alarm import AlarmChannel, AlarmFacts, AlarmKind, Notice
from jobwheel.admin.services.alarm_sending import Courier
from jobwheel.admin.services.status import EngineStatus
from jobwheel.admin.store.alarm_channels import list_channels
from jobwheel.admin.store.alarm_outbox import note
from jobwheel.admin.store.database import Database
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

LOOK_EVERY_S: Final = 5.0
SILENT_FOR_S: Final = 30.0
"""Without a scheduling pass for so long, people are told."""

_DATABASE_S: Final = 10.0


class AdminAlarms:
    """Notes the beginning and the end of each trouble in the outbox, once.

    A node that cannot reach the database sends directly, to the channels as it last read them: of a cluster without a
    database each node does. What it could tell nobody it tries again with the next look.
    """

    def __init__(
        self, database: Database, clock: Clock, zone_name: str, status: EngineStatus, courier: Courier
    ) -> None:
        self._database = database
        self._clock = clock
        self._zone_name = zone_name
        self._status = status
        self._courier = courier
        self._node = socket.gethostname()
        self._since_s = clock.monotonic()
        self._told: set[AlarmKind] = set()
        self._channels: Sequence[AlarmChannel] = ()
        self._hanging: asyncio.Future[object] | None = None

    def begin(self) -> None:
        """The engine starts now: until its first pass, its silence is counted from here."""
        self._since_s = self._clock.monotonic()

    async def run_once(self) -> None:
        """Tell what has begun, and what is over."""
        await self._read_channels()
        troubles = self._troubles()
        for kind in [each for each in troubles if each not in self._told]:
            if await self._tell(kind, troubles[kind]):
                self._told.add(kind)
        for kind in [each for each in self._told if each not in troubles]:
            if await self._tell(AlarmKind.ADMIN_WELL, kind.value):
                self._told.remove(kind)

    def _troubles(self) -> dict[AlarmKind, str]:
        age_s = self._status.collect().last_pass_age_s
        if age_s is None:
            age_s = self._clock.monotonic() - self._since_s
        reasons = {each.code: each.message for each in self._status.reasons()}
        troubles = {}
        if age_s >= SILENT_FOR_S:
            troubles[AlarmKind.NO_SCHEDULING_PASS] = reasons.get(
                "no_scheduling_pass", f"no scheduling pass for {age_s:.0f} s"
            )
        if "clock_off" in reasons:
            troubles[AlarmKind.CLOCK_OFF] = reasons["clock_off"]
        return troubles

    async def _read_channels(self) -> None:
        if await self._database_does(self._channels_of_admins()):
            return
        log.debug("alarms.channels_not_read")

    async def _channels_of_admins(self) -> None:
        channels = await self._database.read(list_channels)
        self._channels = [each for each in channels if each.for_admins and not each.disabled]

    async def _tell(self, kind: AlarmKind, words: str) -> bool:
        # By the database's clock: this host's may be what is wrong, and an alarm that looks old is not sent.
        notice = Notice(kind, self._database.now_ms(), words=words, node=self._node)
        if await self._database_does(self._database.write(note, [notice])):
            return True
        facts = AlarmFacts(kind, notice.at_ms, notice.at_ms, self._zone_name, words=words, node=self._node)
        sent = await asyncio.gather(*(self._send(each, facts) for each in self._channels))
        # Nobody to tell is told as well: otherwise it would be told late, when it is over.
        return any(sent) or not self._channels

    async def _send(self, channel: AlarmChannel, facts: AlarmFacts) -> bool:
        try:
            said = await self._courier.send(channel, self._courier.texts.write(facts))
        except ChannelError as error:
            log.warning("alarms.not_sent", channel=channel.name, alarm=facts.kind, reason=str(error))
            return False
        log.info("alarms.sent_directly", channel=channel.name, alarm=facts.kind, said=said)
        return True

    async def _database_does(self, work: Coroutine[object, object, object]) -> bool:
        """Whether the database did something within a time; what hangs in it is left to its own time-out."""
        if self._hanging is not None and not self._hanging.done():
            work.close()
            return False
        task = asyncio.ensure_future(work)
        task.add_done_callback(_look_at)
        try:
            await asyncio.wait({task}, timeout=_DATABASE_S)
        except asyncio.CancelledError:
            task.cancel()
            raise
        self._hanging = task
        return task.done() and not task.cancelled() and task.exception() is None


def _look_at(task: "asyncio.Future[object]") -> None:
    if not task.cancelled() and task.exception() is not None:
        log.debug("alarms.database_failed", error=repr(task.exception()))
