"""Two nodes on one server that tell alarms at once: each is told once."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from jobwheel.admin.alarms.addresses import Resolver
from jobwheel.admin.alarms.channel import ChannelTools
from jobwheel.admin.alarms.http import HttpSender
from jobwheel.admin.alarms.mail_server import MailServer
from jobwheel.admin.alarms.text import AlarmTexts
from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.services.alarm_distribution import AlarmDistribution
from jobwheel.admin.services.alarm_sending import AlarmSender, Courier
from jobwheel.admin.store.alarm_outbox import note_ended
from jobwheel.admin.store.database import Database, open_database
from jobwheel.kernel.clock import SystemClock
from jobwheel.schedule import Language
from tests.support.alarms import Recorded, add_channel, ended, outbox
from tests.support.store import ZONE, Store

JOBS = 10


@pytest.fixture
async def nodes(server_url: str, server_store: Store) -> AsyncIterator[list[Database]]:
    """The database as two nodes have it open."""
    opened = open_database(server_url, SystemClock())
    await opened.start()
    yield [server_store.database, opened]
    await opened.stop()


async def test_each_alarm_is_given_once_and_sent_once(server_store: Store, nodes: list[Database]) -> None:
    channel = await add_channel(server_store.database)
    recorded, resolver, clock = Recorded(), Resolver(), SystemClock()
    kinds: Mapping[str, Any] = {"recorded": recorded}
    tools = ChannelTools(clock, HttpSender(resolver), MailServer(resolver))
    courier = Courier(kinds, tools, AlarmTexts(Language.EN, None))
    jobs = [await server_store.job(job_desc=f"job-{number}") for number in range(JOBS)]
    runs = [ended(number, jobs[number % JOBS], at_ms=clock.now()) for number in range(1, 10 * JOBS + 1)]
    await server_store.database.write(note_ended, runs)
    await asyncio.gather(*(AlarmDistribution(each, ZONE, kinds).run_once() for each in nodes))
    assert sum(row["merged"] for row in await outbox(server_store.database)) == 10 * JOBS

    async def send_all(node: int) -> None:
        sender = AlarmSender(nodes[node], clock, lambda: NodeId(node + 1), courier)
        while await sender.send_next(channel):
            pass

    await asyncio.gather(send_all(0), send_all(1))
    await send_all(0)
    resolver.close()
    assert sorted(each.fields["job"] for each in recorded.alarms) == sorted(f"job-{each}" for each in range(JOBS))
    assert {each.fields["count"] for each in recorded.alarms} == {"10"}
    assert await outbox(server_store.database) == []
