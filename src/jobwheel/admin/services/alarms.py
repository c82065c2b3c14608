"""Alarms as a whole: everything that finds, gives and sends them, on every node."""

import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from jobwheel.admin.alarms.addresses import Resolver
from jobwheel.admin.alarms.channel import ChannelKind, ChannelTools
from jobwheel.admin.alarms.http import HttpSender
from jobwheel.admin.alarms.mail_server import MailServer
from jobwheel.admin.alarms.text import AlarmTexts
from jobwheel.admin.engine.node import Node
from jobwheel.admin.services import admin_alarms, alarm_watch, group_alarms
from jobwheel.admin.services.admin_alarms import AdminAlarms
from jobwheel.admin.services.alarm_channels import AlarmChannels
from jobwheel.admin.services.alarm_distribution import AlarmDistribution
from jobwheel.admin.services.alarm_sending import AlarmSender, Courier
from jobwheel.admin.services.alarm_watch import AlarmWatch
from jobwheel.admin.services.group_alarms import GroupAlarms
from jobwheel.admin.services.status import EngineStatus
from jobwheel.admin.store.database import Database
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.loop import PeriodicLoop
from jobwheel.kernel.service import ServiceGroup
from jobwheel.schedule import Language

_DISTRIBUTE_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class AlarmOptions:
    """What the installation's settings say about alarms."""

    zone_name: str
    language: Language = Language.EN
    public_url: str | None = None
    allows_private: bool = False
    tls: ssl.SSLContext | None = None


class Alarms(ServiceGroup):
    """The loops of alarms; `channels` are the use cases for people. The database and the node are started before."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        node: Node,
        status: EngineStatus,
        kinds: Mapping[str, ChannelKind],
        options: AlarmOptions,
    ) -> None:
        self._resolver = Resolver()
        http = HttpSender(self._resolver, allows_private=options.allows_private, tls=options.tls)
        tools = ChannelTools(clock, http, MailServer(self._resolver, tls=options.tls))
        courier = Courier(kinds, tools, AlarmTexts(options.language, options.public_url))
        zone_name = options.zone_name
        sender = AlarmSender(database, clock, lambda: node.id, courier)
        self.channels = AlarmChannels(database, clock, zone_name, courier, sender.figures)
        self._admins = AdminAlarms(database, clock, zone_name, status, courier)
        self._sender = sender
        self._distribution = AlarmDistribution(database, zone_name, kinds)
        work: dict[str, tuple[Callable[[], Awaitable[object]], float]] = {
            "alarms.distribution": (self._distribute, _DISTRIBUTE_EVERY_S),
            "alarms.watch": (AlarmWatch(database).run_once, alarm_watch.LOOK_EVERY_S),
            "alarms.groups": (GroupAlarms(database, clock).run_once, group_alarms.LOOK_EVERY_S),
            "alarms.admins": (self._admins.run_once, admin_alarms.LOOK_EVERY_S),
        }
        loops = [PeriodicLoop(name, run_once, every_s, clock) for name, (run_once, every_s) in work.items()]
        super().__init__("alarms", clock, [sender, *loops])

    async def on_start(self) -> None:
        self._admins.begin()
        await super().on_start()

    async def _distribute(self) -> None:
        if await self._distribution.run_once():
            self._sender.wake()

    async def on_stop(self) -> None:
        await super().on_stop()
        self._resolver.close()
