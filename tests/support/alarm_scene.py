"""Everything that tells alarms, on a real SQLite file and a clock that a test moves; any number of nodes."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

from jobwheel.admin.alarms.addresses import Resolver
from jobwheel.admin.alarms.channel import ChannelKind, ChannelTools
from jobwheel.admin.alarms.http import HttpSender
from jobwheel.admin.alarms.kinds import own_kinds
from jobwheel.admin.alarms.mail_server import MailServer
from jobwheel.admin.alarms.text import AlarmTexts
from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.services.alarm_distribution import AlarmDistribution
from jobwheel.admin.services.alarm_sending import AlarmSender, Courier
from jobwheel.admin.services.alarm_watch import AlarmWatch
from jobwheel.admin.services.group_alarms import GroupAlarms
from jobwheel.admin.store.alarm_outbox import EndedForAlarm, note_ended
from jobwheel.admin.store.database import Database
from jobwheel.kernel.fake_clock import FakeClock
from jobwheel.schedule import Language
from tests.support.alarms import Recorded
from tests.support.live_admin import until
from tests.support.store import ZONE, Store


@dataclass
class AlarmScene:
    """A store, a kind of channel that records, and the parts that a test drives by hand."""

    store: Store
    clock: FakeClock
    recorded: Recorded
    kinds: dict[str, ChannelKind]
    tools: ChannelTools
    """For servers that never answer: given up soon."""
    patient: ChannelTools
    """For servers that are to answer."""
    senders: list[AlarmSender] = field(default_factory=list)

    @property
    def database(self) -> Database:
        return self.store.database

    def sender(self, node: int = 1, timeout_s: float = 5.0, tools: ChannelTools | None = None) -> AlarmSender:
        """Another node's sender; its tasks run, but nobody but the test makes it look."""
        courier = Courier(self.kinds, tools or self.tools, AlarmTexts(Language.EN, None), timeout_s)
        made = AlarmSender(self.database, self.clock, lambda: NodeId(node), courier)
        self.senders.append(made)
        return made

    def courier(self) -> Courier:
        return Courier(self.kinds, self.tools, AlarmTexts(Language.EN, None), 5.0)

    async def end(self, *runs: EndedForAlarm) -> None:
        """Runs end, and what is to be told of them is given to channels."""
        await self.database.write(note_ended, runs)
        await self.distribute()

    async def distribute(self) -> int:
        return await AlarmDistribution(self.database, ZONE, self.kinds).run_once()

    def watch(self) -> AlarmWatch:
        return AlarmWatch(self.database)

    def groups(self) -> GroupAlarms:
        return GroupAlarms(self.database, self.clock)

    async def send(self, sender: AlarmSender) -> None:
        """One look, and whatever it begins."""
        await sender.run_once()
        await until(lambda: all(task.done() for task in sender._tasks.values()))

    async def job(self, **columns: Any) -> int:
        return await self.store.job(**columns)


@contextlib.asynccontextmanager
async def alarm_scene(store: Store) -> AsyncIterator[AlarmScene]:
    assert isinstance(store.clock, FakeClock)
    recorded, resolver = Recorded(), Resolver()
    kinds = {**own_kinds(), "recorded": recorded}
    http = HttpSender(resolver, timeout_s=0.2, allows_private=True)
    tools = ChannelTools(store.clock, http, MailServer(resolver, timeout_s=0.2))
    patient = replace(tools, mail=MailServer(resolver, timeout_s=5.0))
    scene = AlarmScene(store, store.clock, recorded, kinds, tools, patient)
    try:
        yield scene
    finally:
        for sender in scene.senders:
            await sender.stop()
            await sender._cancel_tasks()
        resolver.close()
