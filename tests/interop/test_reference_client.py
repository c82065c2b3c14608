"""The library's own clients, as its admins and executors use them, get along with our executor and our admin."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobwheel import Executor, JobContext
from jobwheel.admin.domain.run import Outcome, Phase
from tests.support.http_peer import unused_port
from tests.support.live_admin import LiveAdmin, live_admin, seen
from tests.support.reference_library import ReferenceLibrary

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]
RUN = "run 7 {run_id} settle week=48 {strategy}"


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveAdmin]:
    async with live_admin(tmp_path / "data") as started:
        yield started


@dataclass
class Client:
    """A JVM that asks."""

    process: asyncio.subprocess.Process

    async def ask(self, question: str) -> str:
        """The answer: its code, and what it says."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{question}\n".encode())
        return (await asyncio.wait_for(self.process.stdout.readline(), 30)).decode().strip()


@contextlib.asynccontextmanager
async def started(library: ReferenceLibrary, executor: str, admin: str, token: str) -> AsyncIterator[Client]:
    process = await asyncio.create_subprocess_exec(
        *library.client(),
        *(executor, admin, token),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield Client(process)
    finally:
        process.kill()
        await process.communicate()


async def test_its_client_of_executors_drives_ours(library: ReferenceLibrary, live: LiveAdmin, tmp_path: Path) -> None:
    port = unused_port()
    executor = Executor("orders", live.url, live.token, port=port, log_path=tmp_path / "runs", stop_deadline_s=4)

    @executor.job("settle")
    async def settle(context: JobContext) -> None:
        context.log.info("对账 %s", context.parameter)
        await asyncio.Event().wait()

    await executor.start()
    try:
        async with started(library, f"http://127.0.0.1:{port}/", live.url, live.token) as client:
            await _drive(client)
        async with started(library, f"http://127.0.0.1:{port}/", live.url, "a wrong one") as stranger:
            assert await stranger.ask("beat") == "500 The access token is wrong."
    finally:
        await executor.stop()


async def _drive(client: Client) -> None:
    assert (await client.ask("beat")).startswith("200 ")
    assert (await client.ask("idleBeat 7")).startswith("200 ")
    assert (await client.ask(RUN.format(run_id=4711, strategy="SERIAL_EXECUTION"))).startswith("200 ")
    assert (await client.ask("idleBeat 7")).startswith("500 ")
    assert "Discard Later" in await client.ask(RUN.format(run_id=4712, strategy="DISCARD_LATER"))

    async def logged() -> str | None:
        log = await client.ask("log 4711")
        return log if "对账 week=48" in log else None

    log = await seen(logged)
    assert log.startswith("200 1..")
    assert " false " in log
    assert (await client.ask("kill 7")).startswith("200 ")
    await seen(lambda: _says(client, "idleBeat 7", "200 "))
    await seen(lambda: _says(client, "log 4711", " true "))


async def _says(client: Client, question: str, words: str) -> bool:
    return words in await client.ask(question)


async def test_its_client_of_admins_gets_along_with_ours(library: ReferenceLibrary, live: LiveAdmin) -> None:
    address = "http://127.0.0.1:1/"
    async with (
        live.executor(reports=False) as recording,
        started(library, address, f"{live.url}/xxl-job-admin", live.token) as client,
        started(library, address, live.url, "a wrong one") as stranger,
    ):
        await recording.register()
        run_id = await live.trigger(await live.job())
        await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)
        assert (await stranger.ask(f"callback {run_id} 500 no")).startswith("500 ")
        assert (await client.ask(f"registry orders {address}")).startswith("200 ")
        assert await _addresses(live) == sorted([address, recording.address])
        assert (await client.ask(f"callback {run_id} 200 对账完成")).startswith("200 ")
        run = await live.run(run_id)
        assert (run.outcome, run.handle_message) == (Outcome.SUCCEEDED, "对账完成")
        assert (await client.ask(f"registryRemove orders {address}")).startswith("200 ")
        assert await _addresses(live) == [recording.address]


async def _addresses(live: LiveAdmin) -> list[str]:
    views = await live.admin.services.groups.page(0, 100)
    return sorted(each.address for view in views for each in view.live_addresses)
