"""A database of the first schema, runs in every phase in it, is upgraded in place by two at once; an admin goes on."""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobwheel.admin.domain.ids import NodeId, RunId
from jobwheel.admin.domain.run import Outcome, Phase
from jobwheel.admin.domain.writes import Accepted, Unconfirmed
from jobwheel.admin.store import Connection, run_log, schema
from jobwheel.admin.store.database import open_database
from jobwheel.admin.store.registry import beat
from jobwheel.admin.store.tables import job_log
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.messages import Features, RegistryRequest
from tests.support.followups import failed, succeeded
from tests.support.http_peer import unused_port
from tests.support.live_admin import live_admin
from tests.support.recording_executor import INSTANCE, RecordingExecutor
from tests.support.recoveries import may_judge
from tests.support.run_servers import Servers
from tests.support.servers import SERVER_KINDS
from tests.support.store import NOW_MS, ZONE, Store, begin_ids_high, take_off

CLOCK = SystemClock()
FIRST = "0001"


@pytest.fixture(params=SERVER_KINDS)
def url(request: pytest.FixtureRequest, servers: Servers) -> str:
    """An empty database."""
    return servers.make_database(request.param, "jobwheel_old")


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    """A database of the first schema."""
    database = open_database(url, CLOCK)
    await database.start()
    await database.write_patiently(schema.upgrade, "here", FIRST)
    await database.write_patiently(begin_ids_high, [job_log])
    yield Store(database, InstallationZone(ZONE), CLOCK)
    await database.stop()


async def runs_in_every_phase(store: Store, address: str) -> dict[str, RunId]:
    """What a node left that is dead by now: pending and sending runs are its own, others anybody's."""
    dead, group = await store.node(), await store.group()
    beaten = RegistryRequest(
        registry_group="EXECUTOR", registry_key="orders", registry_value=address, features=Features(instance=INSTANCE)
    )
    await store.database.write(beat, store.zone, beaten, CLOCK.now())
    job = await store.job(job_group=group, trigger_status=0)

    async def sending() -> RunId:
        (run,) = await store.pending(dead, job_id=job, group_id=group)
        await store.database.write(_take_off, dead, run.id, address)
        return run.id

    (pending,) = await store.pending(dead, job_id=job, group_id=group)
    (ownerless,) = await store.pending(None, job_id=job, group_id=group)
    made = {"pending": pending.id, "ownerless": ownerless.id, "sending": await sending()}
    made |= {phase: await sending() for phase in ("unconfirmed", "accepted", "succeeded", "failed")}
    now_ms = CLOCK.now()
    accepted = Accepted(made["accepted"], now_ms, INSTANCE, "", now_ms, now_ms + 120_000)
    doubted = Unconfirmed(made["unconfirmed"], now_ms, now_ms, "")
    await store.apply(dead, accepted, doubted, succeeded(made["succeeded"]), failed(made["failed"]))
    return made


def _take_off(connection: Connection, node: NodeId, run_id: RunId, address: str) -> None:
    matched = run_log.take_off(connection, node, NOW_MS, [take_off(run_id, INSTANCE, address)])
    assert matched == {run_id}


async def upgrade(url: str) -> str:
    """The command of the command line, as a process; what it says."""
    arguments = ("-m", "jobwheel", "db", "upgrade", "--database-url", url)
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    assert process.returncode == 0, said
    return said.decode()


@pytest.mark.process
@pytest.mark.timeout(60)
async def test_runs_in_every_phase_go_on(url: str, store: Store, tmp_path: Path) -> None:
    token, port = secrets.token_urlsafe(16), unused_port()
    made = await runs_in_every_phase(store, f"http://127.0.0.1:{port}/")
    said = await asyncio.gather(upgrade(url), upgrade(url))
    assert any(f"from {FIRST} to {schema.newest_version()}" in each for each in said)
    assert await store.database.read(schema.current_version) == schema.newest_version()
    async with (
        RecordingExecutor("", token, instance=INSTANCE, port=port, reports=False) as executor,
        live_admin(tmp_path, token, database_url=url) as live,
    ):
        executor.admin_url = live.url
        # It has been there for long enough to bury the dead.
        may_judge(live)
        await live.admin.engine._context.node.beat()
        new = await live.trigger(await live.job())
        sent = [made[phase] for phase in ("pending", "ownerless", "sending", "unconfirmed")]
        for run_id in (*sent, new, made["accepted"]):
            await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)
            await executor.report(run_id)
        ended = {phase: await live.done(run_id) for phase, run_id in {**made, "new": new}.items()}
    assert ended.pop("failed").outcome is Outcome.FAILED
    assert {phase: run.outcome for phase, run in ended.items()} == dict.fromkeys(ended, Outcome.SUCCEEDED)
    assert sorted(executor.started) == sorted([*sent, new])
