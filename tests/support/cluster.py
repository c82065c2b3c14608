"""Three admins on a database server of their own and an executor that knows them all: to be killed, frozen, cut off."""

import asyncio
import contextlib
import random
import secrets
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from sqlalchemy.ext.asyncio import AsyncConnection

from jobwheel.admin.domain.ids import JobId
from tests.support.http_peer import unused_port
from tests.support.run_servers import connected
from tests.support.scene import CLOCK, Scene, make_jobs
from tests.support.servers import Server, running_server

NODES = 3
DATABASE = "cluster"
JOBS = 10
# What differs from a cron job of each second whose missed instants are dropped.
SPECIAL: tuple[dict[str, object], ...] = (
    {"schedule_type": "FIX_RATE", "schedule_conf": "1"},
    {"schedule_type": "FIX_RATE", "schedule_conf": "1", "misfire_strategy": "FIRE_ONCE_NOW"},
    {"misfire_strategy": "FIRE_ONCE_NOW"},
    {"misfire_strategy": "FIRE_ALL"},
)
# Counted from the end of a run: which instants they have cannot be told beforehand.
_DELAYED: dict[str, object] = {"schedule_type": "FIX_DELAY", "schedule_conf": "1"}
DELAYED = (_DELAYED, _DELAYED)
_UNREACHABLE = "unreachable"
GREEN_WITHIN_S = 10.0
"""So soon after a fault is over each node schedules again and says so."""

SETTLED_WITHIN_S = 100.0
"""So soon after a fault is over each run planned meanwhile has ended: a dead node's runs are adopted after 15 s, a run
that got stuck in sending is looked for after 33 s, and an executor repeats a result after half a minute at most."""


@dataclass
class Node:
    """One admin: started, killed, frozen, woken, started again."""

    scene: Scene
    port: int
    _process: asyncio.subprocess.Process | None = None
    _running: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)

    async def start(self) -> None:
        """Start it; return when it listens."""
        self._process = await self._running.enter_async_context(self.scene.admin(self.port))

    async def kill(self) -> None:
        """End it with SIGKILL."""
        self._signal(signal.SIGKILL)
        await self._running.aclose()

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._signal(signal.SIGCONT)

    async def stop(self) -> int:
        """Stop it gracefully; its exit status."""
        self._signal(signal.SIGTERM)
        assert self._process is not None
        status = await asyncio.wait_for(self._process.wait(), 15)
        await self._running.aclose()
        return status

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def reasons(self) -> list[str]:
        """The codes of the reasons why it is not healthy, as `/health` has them; nothing if it is.

        A node that does not answer is not healthy either, and says nothing of it.
        """
        async with httpx.AsyncClient(timeout=5) as client:
            try:
                reply = await client.get(f"http://127.0.0.1:{self.port}/health")
            except httpx.TransportError as error:
                return [f"{_UNREACHABLE}: {error!r}"]
        return [str(each["code"]) for each in reply.json()["reasons"]]

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


@dataclass
class Cluster:
    """Everything, running. `source` draws what is left to chance, by `seed`.

    Attributes:
        jobs: those of each second.
        delayed: those of fixed delay.
    """

    server: Server
    scene: Scene
    nodes: list[Node]
    jobs: list[JobId]
    delayed: list[JobId]
    seed: int
    source: random.Random

    async def wait_between(self, least_s: float, most_s: float) -> None:
        await CLOCK.wait(self.source.uniform(least_s, most_s))

    async def victim(self) -> Node:
        """Wait for a moment, and say which node is hurt then.

        Any moment and any node; or, half of the time, a node that is sending just then: within the first 20 ms of a
        second in which it has runs to send.
        """
        await self.wait_between(1, 3)
        if self.source.random() < 0.5:
            return self.source.choice(self.nodes)
        due_ms = (CLOCK.now() + 300) // 1000 * 1000 + 1000
        sender = (
            "SELECT process_id FROM jobwheel_node JOIN xxl_job_log ON owner = jobwheel_node.id "
            f"WHERE phase = 'pending' AND due_ms = {due_ms}"
        )
        async with self.connected() as connection:
            process_id = (await connection.exec_driver_sql(sender)).scalar()
        await CLOCK.wait((due_ms - CLOCK.now()) / 1000 + self.source.uniform(0, 0.02))
        return next((node for node in self.nodes if node.process_id == process_id), self.nodes[0])

    def connected(self) -> contextlib.AbstractAsyncContextManager[AsyncConnection]:
        """A connection to the cluster's database, beside those of the admins."""
        return connected(self.server, DATABASE)

    async def stop_database(self) -> None:
        await asyncio.to_thread(self.server.process.stop)

    async def start_database(self) -> None:
        """Start it again; return when it accepts connections."""
        await asyncio.to_thread(self.server.process.start)

    async def red(self, within_s: float, code: str | None = None) -> None:
        """Return once every node has said that it is not healthy, for the reason with this code if one is given.

        Raises:
            TimeoutError: one has not.
        """
        async with asyncio.timeout(within_s):
            for node in self.nodes:
                while not _says(await node.reasons(), code):
                    await CLOCK.wait(0.1)

    async def green(self) -> float:
        """Wait until every node says that it is healthy; how many seconds it took.

        Raises:
            TimeoutError: one does not, long after it should.
        """
        begun_s = CLOCK.monotonic()
        async with asyncio.timeout(SETTLED_WITHIN_S):
            for node in self.nodes:
                while await node.reasons():
                    await CLOCK.wait(0.1)
        return CLOCK.monotonic() - begun_s

    async def settled(self) -> int:
        """Wait until everything planned before now is planned, run and ended; the instant before which this holds.

        Raises:
            TimeoutError: a run does not end in time.
        """
        until_ms = CLOCK.now() // 1000 * 1000
        planned = f"SELECT COUNT(*) FROM xxl_job_info WHERE trigger_status = 1 AND trigger_next_time < {until_ms}"
        open_runs = f"SELECT COUNT(*) FROM xxl_job_log WHERE phase IS NOT NULL AND planned_ms < {until_ms}"
        async with asyncio.timeout(SETTLED_WITHIN_S), self.connected() as connection:
            for query in (planned, open_runs):
                while (await connection.exec_driver_sql(query)).scalar_one():
                    await CLOCK.wait(0.2)
        return until_ms

    async def said(self, words: str) -> int:
        """How often so far a node or the executor has said these words in its log."""
        assert self.scene.log_path is not None
        log = await asyncio.to_thread(self.scene.log_path.read_text, "utf-8", "replace")
        return log.count(words)

    async def started(self) -> int:
        """Wait until a run has begun; the next whole second. Before that runs fail, since no executor is known."""
        async with asyncio.timeout(60):
            while not self.scene.starts_path.exists() or not self.scene.starts_path.stat().st_size:
                await CLOCK.wait(0.1)
        return CLOCK.now() // 1000 * 1000 + 1000


@contextlib.asynccontextmanager
async def running_cluster(kind: str, folder: Path, migrating: asyncio.Lock) -> AsyncIterator[Cluster]:
    """A cluster on a new server of this kind, with per-second jobs; stopped gracefully at the end.

    `migrating` is held while the schema is made: Alembic cannot do two of them in one process at once.

    Raises:
        ServerMissingError: there is no such server.
    """
    async with contextlib.AsyncExitStack() as stack:
        scene, server = await _scene(stack, kind, folder)
        async with migrating:
            jobs = await make_jobs(scene, len(DELAYED) + JOBS, [*DELAYED, *SPECIAL])
        nodes = [Node(scene, unused_port()) for _ in range(NODES)]
        admins = ",".join(f"http://127.0.0.1:{node.port}" for node in nodes)
        known = (admins, scene.token, scene.executor_port, scene.starts_path)
        executor = await stack.enter_async_context(scene.process("tests.support.sdk_executor_process", *known))
        for node in nodes:
            stack.push_async_callback(node._running.aclose)
            await node.start()
        seed = secrets.randbelow(2**32)
        delayed, each_second = jobs[: len(DELAYED)], jobs[len(DELAYED) :]
        yield Cluster(server, scene, nodes, each_second, delayed, seed, random.Random(seed))
        assert [await node.stop() for node in nodes] == [0] * NODES
        executor.send_signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(executor.wait(), 12)


async def _scene(stack: contextlib.AsyncExitStack, kind: str, folder: Path) -> tuple[Scene, Server]:
    """An empty database on a running server, which is started and stopped in a thread: it takes seconds."""
    await asyncio.to_thread(folder.mkdir, parents=True)
    context = running_server(kind)
    server = await asyncio.to_thread(context.__enter__)
    stack.push_async_callback(asyncio.to_thread, context.__exit__, None, None, None)
    async with connected(server) as connection:
        await connection.exec_driver_sql(f"CREATE DATABASE {DATABASE}")
    token, ports = secrets.token_urlsafe(16), (unused_port(), unused_port())
    return Scene(folder / "data", token, *ports, server.url(DATABASE), folder / "log"), server


def _says(reasons: list[str], code: str | None) -> bool:
    """Whether a node has given a reason, this one if one is wanted."""
    return any(not each.startswith(_UNREACHABLE) and code in (None, each) for each in reasons)
