"""What executors should not do, addresses where none is, and a job beside them that has to be on time."""

import contextlib
import itertools
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from sqlalchemy import insert, update

from jobwheel.admin.domain.ids import GroupId, RunId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.store.tables import job_group, job_registry
from tests.support.http_peer import Behaviour
from tests.support.live_admin import CLOCK, LiveAdmin, until
from tests.support.recording_executor import RecordingExecutor

_ON_TIME_MS = 2000
_SECONDS = 2


@contextlib.asynccontextmanager
async def on_time(live: LiveAdmin, within_ms: int = _ON_TIME_MS) -> AsyncIterator[RecordingExecutor]:
    """A healthy executor of a group of its own, whose job runs each second.

    At the end each of its instants has arrived there, once and on time. When it arrived is what counts: `sent_ms` is
    when a run took off, not when its turn on the wire came.
    """
    async with live.executor(app_name="billing") as healthy:
        await healthy.register()
        every_second = {"schedule_type": "CRON", "schedule_conf": "* * * * * ?"}
        job = await live.job(app_name="billing", running=True, **every_second)
        yield healthy
        last_ms = CLOCK.now() // 1000 * 1000
        await until(lambda: CLOCK.now() > last_ms + 1000 and len(healthy.runs()) >= _SECONDS, 20)
        await live.admin.services.jobs.stop(job.id, actor="test")
        runs = [await live.done(run.id, 20) for run in await live.runs(job)]
        assert {run.outcome for run in runs} == {Outcome.SUCCEEDED}
        planned = {run.id: run.planned_ms or 0 for run in runs}
        first_ms = min(planned.values())
        assert sorted(planned.values()) == list(range(first_ms, first_ms + 1000 * len(planned), 1000))
        assert max(planned.values()) >= last_ms
        assert sorted(asked.log_id for asked in healthy.runs()) == sorted(planned)
        assert max(asked.at_ms - planned[RunId(asked.log_id)] for asked in healthy.runs()) < within_ms


async def register(live: LiveAdmin, app_name: str, *addresses: str, **features: object) -> None:
    """Put addresses into the registry, as an admin that lets everything pass would."""
    now_ms = live.admin.database.now_ms()
    row = {
        "registry_group": "EXECUTOR",
        "registry_key": app_name,
        "update_time": live.admin.installation.zone.to_wall(now_ms),
        "beat_ms": now_ms,
        **features,
    }
    rows = [{**row, "registry_value": address} for address in addresses]
    await live.admin.database.write(lambda c: c.execute(insert(job_registry), rows))
    await live.admin.engine.addresses.refresh()


async def group(live: LiveAdmin, app_name: str) -> GroupId:
    """A group that executors register with."""
    view = await live.admin.services.groups.create({"app_name": app_name, "title": app_name}, actor="test")
    return view.group.id


async def fixed_group(live: LiveAdmin, app_name: str, addresses: Sequence[str]) -> GroupId:
    """A group with a fixed list, whatever is in it."""
    group_id = await group(live, app_name)
    columns: dict[str, Any] = {"address_type": 1, "address_list": ",".join(addresses)}
    statement = update(job_group).where(job_group.c.id == group_id).values(columns)
    await live.admin.database.write(lambda c: c.execute(statement))
    await live.admin.engine.addresses.refresh()
    return group_id


def loopbacks(count: int, port: int, net: int = 1) -> list[str]:
    """So many addresses that all lead to one port of this machine, sorted as text."""
    hosts = (f"127.{net}.{high}.{low}" for high in itertools.count(1) for low in range(1, 251))
    return sorted(f"http://{host}:{port}/" for host in itertools.islice(hosts, count))


@contextlib.contextmanager
def black_hole() -> Iterator[int]:
    """A port at which connections are neither taken nor refused, by whichever loopback address."""
    with socket.create_server(("0.0.0.0", 0), backlog=0) as full:
        port: int = full.getsockname()[1]
        # The kernel keeps one connection waiting; further ones get no answer.
        with socket.create_connection(("127.0.0.1", port)):
            yield port


def endless(head: bytes, part: bytes) -> Behaviour:
    """A reply that goes on until the client has enough; no more than a part of it is held."""

    async def behave(writer: Any) -> None:
        writer.write(head)
        while True:
            writer.write(part)
            await writer.drain()

    return behave


async def trickle(writer: Any) -> None:
    """A reply of which a byte comes each tenth of a second."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
    while not writer.is_closing():
        writer.write(b" ")
        await writer.drain()
        await CLOCK.wait(0.1)
