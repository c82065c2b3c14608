"""Sends what waits in the outbox: each channel in a task of its own, so that none waits for another."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from jobwheel.admin.alarms.channel import Alarm, Channel, ChannelKind, ChannelTools
from jobwheel.admin.alarms.errors import ChannelError
from jobwheel.admin.alarms.settings import SettingRefusedError, read_values
from jobwheel.admin.alarms.text import AlarmTexts
from jobwheel.admin.domain.alarm import AlarmChannel
from jobwheel.admin.domain.ids import ChannelId, NodeId
from jobwheel.admin.store.alarm_outbox import count_waiting
from jobwheel.admin.store.alarm_sending import TakenAlarm, due_channels, free_all, settle_failed, settle_sent, take
from jobwheel.admin.store.database import Database
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.loop import PeriodicLoop
from jobwheel.kernel.service import Service

log = get_logger(__name__)

LOOK_EVERY_S: Final = 1.0
SEND_TIMEOUT_S: Final = 30.0
LEASE_MS: Final = 60_000
"""How long a node has for an alarm that it took; it is longer than a send may take."""

_STOP_S: Final = 3.0
_AGAIN_AFTER_S: Final = (10, 30, 60, 120, 300, 600)


@dataclass
class AlarmFigures:
    """What became of alarms on this node since it started, by kind of channel; `waiting` in the whole cluster."""

    waiting: int = 0
    sent: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)


class Courier:
    """Sends one alarm through one channel, whatever kind it is of.

    Args:
        kinds: the kinds by name.
        tools: what channels send with.
        texts: writes the alarms.
        timeout_s: how long a channel may take.
    """

    def __init__(
        self,
        kinds: Mapping[str, ChannelKind],
        tools: ChannelTools,
        texts: AlarmTexts,
        timeout_s: float = SEND_TIMEOUT_S,
    ) -> None:
        self.kinds = kinds
        self.texts = texts
        self.timeout_s = timeout_s
        self._tools = tools

    async def send(self, channel: AlarmChannel, alarm: Alarm) -> str:
        """Send an alarm; return what the far side said.

        Raises:
            ChannelError: it was not taken; says why.
        """
        made = self.make(channel)
        try:
            async with asyncio.timeout(self.timeout_s):
                return await made.send(alarm)
        except ChannelError:
            raise
        except TimeoutError as error:
            raise ChannelError(f"it took longer than {self.timeout_s:g} s") from error
        except Exception as error:
            log.exception("alarms.channel_failed", channel=channel.name, kind=channel.kind)
            raise ChannelError(f"the channel failed by a fault of its own: {type(error).__name__}") from error

    def try_out(self, kind: ChannelKind, values: Mapping[str, object]) -> None:
        """See whether settings make a channel of a kind; sends nothing.

        Raises:
            SettingRefusedError: they do not go together.
        """
        kind.make(values, self._tools)

    def make(self, channel: AlarmChannel) -> Channel:
        """The channel itself.

        Raises:
            ChannelError: what is stored of it makes none.
        """
        kind = self.kinds.get(channel.kind)
        if kind is None:
            raise ChannelError(f"there is no kind {channel.kind} here: its plug-in is not installed on this node")
        try:
            return kind.make(read_values(kind.settings, {}, channel.settings), self._tools)
        except SettingRefusedError as error:
            raise ChannelError(f"its settings are wrong: {error}") from error


class AlarmSender(Service):
    """Looks for due alarms each second, and has a task send those of each channel one after the other.

    An alarm is taken, sent, and removed: three steps, of which the first and the last are committed. A node that dies
    in between repeats one alarm for each channel at most: what it held comes due again when its lease ends.
    """

    def __init__(self, database: Database, clock: Clock, node_id: Callable[[], NodeId], courier: Courier) -> None:
        super().__init__("alarms.sender", clock)
        self.figures = AlarmFigures()
        self._database = database
        self._node_id = node_id
        self._courier = courier
        self._is_stopping = False
        # Sent, or not, but not written down since the database was away: it is written before anything else is taken.
        self._unsettled: dict[ChannelId, Callable[[], Awaitable[object]]] = {}
        self._looks = PeriodicLoop("alarms.outbox", self.run_once, LOOK_EVERY_S, clock)

    async def on_start(self) -> None:
        self._is_stopping = False
        if self._database.is_for_one_node:
            await self._database.write(free_all, self._database.now_ms())
        await self._looks.start()

    async def on_stop(self) -> None:
        self._is_stopping = True
        await self._looks.stop()
        under_way = [task for task in self._tasks.values() if not task.done()]
        if under_way:
            # What is not through by then is cancelled, and sent again when its lease ends.
            await asyncio.wait(under_way, timeout=_STOP_S)

    def wake(self) -> None:
        """There may be something to send."""
        self._looks.wake()

    async def run_once(self) -> None:
        """Have every channel that has something due, and is not sending, send it."""
        self.figures.waiting = await self._database.read(count_waiting)
        for channel_id in await self._database.read(due_channels, self._database.now_ms()):
            name = f"channel-{channel_id}"
            if name not in self._tasks or self._tasks[name].done():
                self.supervise(name, partial(self._drain, channel_id))

    async def _drain(self, channel_id: ChannelId) -> None:
        while not self._is_stopping and await self.send_next(channel_id):
            pass

    async def send_next(self, channel_id: ChannelId) -> bool:
        """Send a channel's next alarm; False if nothing was to be done."""
        await self._settle(channel_id)
        now_ms, node_id = self._database.now_ms(), self._node_id()
        looked = await self._database.write(take, channel_id, node_id, now_ms, now_ms + LEASE_MS)
        if looked.given_up or looked.outdated:
            log.warning("alarms.too_old", channel=channel_id, given_up=looked.given_up, outdated=looked.outdated)
        alarm = looked.alarm
        if alarm is None:
            return bool(looked.given_up or looked.outdated)
        if self._database.now_ms() + self._courier.timeout_s * 1000 > alarm.lease_ms:
            # The database took its time: before it is sent, another node may take it. It is due again when it may.
            log.warning("alarms.taken_too_late", channel=alarm.channel.name, alarm=alarm.facts.kind)
            return True
        try:
            said = await self._courier.send(alarm.channel, self._courier.texts.write(alarm.facts))
        except ChannelError as error:
            self._unsettled[channel_id] = partial(self._not_sent, alarm, node_id, str(error))
        else:
            self.figures.sent[alarm.channel.kind] += 1
            log.info(
                "alarms.sent", channel=alarm.channel.name, alarm=alarm.facts.kind, count=alarm.facts.count, said=said
            )
            self._unsettled[channel_id] = partial(self._note_sent, alarm, node_id)
        await self._settle(channel_id)
        return True

    async def _settle(self, channel_id: ChannelId) -> None:
        settle = self._unsettled.get(channel_id)
        if settle is not None:
            await settle()
            del self._unsettled[channel_id]

    async def _note_sent(self, alarm: TakenAlarm, node_id: NodeId) -> None:
        await self._database.write(settle_sent, node_id, alarm)

    async def _not_sent(self, alarm: TakenAlarm, node_id: NodeId, reason: str) -> None:
        now_ms = self._database.now_ms()
        again_ms = now_ms + 1000 * _AGAIN_AFTER_S[min(alarm.attempt, len(_AGAIN_AFTER_S)) - 1]
        given_up = await self._database.write(settle_failed, node_id, alarm, again_ms, now_ms, reason)
        if given_up:
            self.figures.failed[alarm.channel.kind] += 1
        level = log.error if given_up else log.warning
        level(
            "alarms.given_up" if given_up else "alarms.not_sent",
            channel=alarm.channel.name,
            alarm=alarm.facts.kind,
            attempt=alarm.attempt,
            reason=reason,
        )
