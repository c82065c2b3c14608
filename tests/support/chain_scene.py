"""Trees of runs under two admins that are killed: parents, children, grandchildren, retries, broadcasts and alarms."""

import asyncio
import contextlib
import json
import random
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy.engine import make_url

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.store.database import open_database
from tests.support.checker import Start, Verdict, judge
from tests.support.cluster import Node
from tests.support.http_peer import HttpPeer, reply, unused_port
from tests.support.live_admin import seen
from tests.support.run_servers import connected
from tests.support.scene import CLOCK, Scene, read_starts
from tests.support.servers import Server
from tests.support.single_node import Operator, Row, make_database, operator
from tests.support.store import begin_ids_high

Key = tuple[str, str, int]
"""A run of a tree: which of its jobs, which shard, which try."""

TREE: Final[dict[Key, str]] = {
    ("root", "", 1): "succeeded",
    # Its retry succeeds, and starts the next.
    ("late", "", 1): "failed",
    ("late", "", 2): "succeeded",
    ("after late", "", 1): "succeeded",
    # The join: each shard succeeds with its retry, and together they start one.
    ("shards", "0/2", 1): "failed",
    ("shards", "0/2", 2): "succeeded",
    ("shards", "1/2", 1): "failed",
    ("shards", "1/2", 2): "succeeded",
    ("after shards", "", 1): "succeeded",
    # It fails for good: an alarm, and no child.
    ("doomed", "", 1): "failed",
    ("doomed", "", 2): "failed",
}
"""The runs that each tree must have, and how each ends."""

TREES_A_ROUND: Final = 4
_WARM_UP: Final = "warm up"
_PLACES: Final = {key: place for place, key in enumerate(TREE, 1)}
_SETTLED_WITHIN_S: Final = 100
_RUNS: Final = (
    "SELECT id, job_id, first_run_id, broadcast_id, parent_run_id, executor_sharding_param, attempt, outcome "
    "FROM xxl_job_log ORDER BY id"
)
_OPEN: Final = "SELECT trigger_type, phase, COUNT(*) FROM xxl_job_log WHERE phase IS NOT NULL GROUP BY 1, 2"
_UNSETTLED_RUNS: Final = (
    "SELECT id, job_id, trigger_type, phase, owner, due_ms, sent_ms, accepted_ms, check_ms, executor_address, attempt "
    "FROM xxl_job_log WHERE phase IS NOT NULL"
)
_UNSENT_ALARMS: Final = "SELECT * FROM jobwheel_alarm_outbox"


@dataclass
class ChainScene:
    """Two admins, two executors that know both, somebody who is told the alarms; `source` draws what is left to chance.

    Attributes:
        met: what was open at the kills, by trigger type and phase.
        alarms_met: how many alarms were on their way at the kills.
    """

    server: Server
    scene: Scene
    nodes: list[Node]
    hook: HttpPeer
    source: random.Random
    jobs: dict[str, JobId] = field(default_factory=dict)
    trees: int = 0
    kills: int = 0
    met: Counter[str] = field(default_factory=Counter)
    alarms_met: int = 0

    async def rows(self, query: str) -> list[Row]:
        async with connected(self.server, make_url(self.scene.database_url).database) as connection:
            return [tuple(row) for row in await connection.exec_driver_sql(query)]

    @contextlib.asynccontextmanager
    async def someone(self) -> AsyncIterator[Operator]:
        """Somebody signed in at one of the nodes."""
        async with operator(replace(self.scene, admin_port=self.source.choice(self.nodes).port)) as someone:
            yield someone

    async def prepare(self) -> None:
        """Wait for both executors; make the channel and the jobs that all trees share."""

        async def are_there() -> bool:
            await CLOCK.wait(0.05)
            return await self.rows("SELECT COUNT(*) FROM xxl_job_registry") == [(2,)]

        await seen(are_there, 60)
        async with self.someone() as someone:
            channel = {"name": "hook", "kind": "webhook", "settings": {"url": self.hook.root}, "is_default": True}
            await someone.ask("POST", "alarm-channels", **channel)
            # It fails as long as its node knows no executor. Nobody is told: what is told twice waits for ten minutes.
            quiet = {"failures": "NONE"}
            self.jobs[_WARM_UP] = await self._job(
                someone, _WARM_UP, route_strategy="SHARDING_BROADCAST", alarm_settings=quiet
            )
            for name in ("after late", "after shards", "after doomed"):
                self.jobs[name] = await self._job(someone, name)
            again: dict[str, Any] = {"parameter": "1", "retry_count": 1}
            self.jobs["late"] = await self._job(someone, "late", "after late", retry_interval_s=1, **again)
            self.jobs["shards"] = await self._job(
                someone, "shards", "after shards", route_strategy="SHARDING_BROADCAST", **again
            )
        for node in self.nodes:
            await self._warm_up(node)

    async def _warm_up(self, node: Node) -> None:
        """Wait until a node knows both executors: a broadcast goes to both."""
        async with operator(replace(self.scene, admin_port=node.port)) as someone, asyncio.timeout(60):
            shard = None
            while shard != "0/2":
                run_id = await someone.trigger(self.jobs[_WARM_UP])
                look = f"SELECT executor_sharding_param FROM xxl_job_log WHERE id = {run_id} AND phase IS NULL"
                while not (found := await self.rows(look)):
                    await CLOCK.wait(0.1)
                ((shard,),) = found

    async def round(self, *, both: bool) -> None:
        """Let trees grow; kill a node, or both, and start what was killed."""
        await self.grow()
        await self._wait_between(0, 1.8)
        victims = self.nodes if both else [self.source.choice(self.nodes)]
        for node in victims:
            await node.kill()
            self.kills += 1
        self.met.update({f"{cause} {phase}": count for cause, phase, count in await self.rows(_OPEN)})
        ((alarms,),) = await self.rows("SELECT COUNT(*) FROM jobwheel_alarm_outbox")
        self.alarms_met += alarms
        await self._wait_between(0, 2)
        for node in victims:
            await node.start()

    async def grow(self) -> None:
        """Begin some trees at once, each with jobs of its own for what is told by name."""
        async with self.someone() as someone:
            roots = []
            for _ in range(TREES_A_ROUND):
                self.trees += 1
                doomed = f"doomed {self.trees}"
                self.jobs[doomed] = await self._job(someone, doomed, "after doomed", parameter="9", retry_count=1)
                roots.append(await self._job(someone, f"root {self.trees}", "late", "shards", doomed))
            await asyncio.gather(*(someone.trigger(root) for root in roots))

    async def settled(self) -> None:
        """Return once every run has ended and every alarm was sent.

        Raises:
            AssertionError: one has not; its message is what is left.
        """
        left: list[Row] = []

        async def all_over() -> bool:
            nonlocal left
            await CLOCK.wait(0.2)
            left = [row for query in (_UNSETTLED_RUNS, _UNSENT_ALARMS) for row in await self.rows(query)]
            return not left

        try:
            await seen(all_over, _SETTLED_WITHIN_S)
        except TimeoutError:
            raise AssertionError(f"not over {_SETTLED_WITHIN_S} s after the last kill: {left}") from None

    async def judged(self) -> tuple[Verdict, list[str]]:
        """The verdict on all runs of all trees, and what else is wrong."""
        placed = placed_runs(await self.rows(_RUNS), dict(await self.rows("SELECT id, job_desc FROM xxl_job_info")))
        all_starts = await asyncio.to_thread(read_starts, self.scene.starts_path)
        starts = [(start, placed[start.log_id]) for start in all_starts if start.job_id != self.jobs[_WARM_UP]]
        verdict = judge(
            [(tree, place) for tree in range(1, self.trees + 1) for place in _PLACES.values()],
            [Start(run.tree, start.log_id, run.place, start.at_ms) for start, run in starts],
            [],
            rows=[(run.tree, run.place) for run in placed.values()],
        )
        # Places are no instants: nothing is late.
        return replace(verdict, latest_ms=0), [*wrong_ends(placed.values()), *self._wrong_alarms()]

    @property
    def told(self) -> Counter[str]:
        """How often somebody was told of each job that failed for good."""
        bodies = [json.loads(request.body) for request in self.hook.requests]
        return Counter(body["job"] for body in bodies if body["kind"] == "failed")

    def _wrong_alarms(self) -> list[str]:
        """Each failure is told at least once, and a node that is killed repeats one message at most."""
        told, doomed = self.told, {f"doomed {tree}" for tree in range(1, self.trees + 1)}
        wrong = [f"nobody was told of {name}" for name in sorted(doomed - told.keys())]
        wrong += [f"somebody was told of {name}, which did not fail for good" for name in sorted(told.keys() - doomed)]
        repeated = told.total() - len(told)
        return [*wrong, f"{repeated} alarms came twice"] if repeated > self.kills else wrong

    async def _job(self, someone: Operator, name: str, *children: str, **fields: Any) -> JobId:
        return await someone.job(name=name, child_job_ids=[self.jobs[child] for child in children], **fields)

    async def _wait_between(self, least_s: float, most_s: float) -> None:
        await CLOCK.wait(self.source.uniform(least_s, most_s))


@dataclass(frozen=True, slots=True)
class PlacedRun:
    """A run of a tree (0: of none) and what it is there."""

    id: int
    tree: int
    key: Key
    outcome: str | None

    @property
    def place(self) -> int:
        """Its number in the tree; 0: no tree has such a run."""
        return _PLACES.get(self.key, 0)


def placed_runs(rows: Iterable[Row], names: dict[int, str]) -> dict[int, PlacedRun]:
    """Every run by its id. `rows` as `_RUNS` gives them, `names` of the jobs."""
    placed: dict[int, PlacedRun] = {}
    for run_id, job_id, first, broadcast, parent, shard, attempt, outcome in rows:
        if names[job_id] == _WARM_UP:
            continue
        name, _, number = names[job_id].rpartition(" ")
        if not number.isdigit():
            name, number = names[job_id], ""
        # Whatever a run comes of has a lower id.
        origin = next((placed[each] for each in (first, broadcast, parent) if each in placed), None)
        tree = int(number) if name == "root" else origin.tree if origin is not None else 0
        placed[run_id] = PlacedRun(run_id, tree, (name, shard or "", attempt), outcome)
    return placed


def wrong_ends(runs: Iterable[PlacedRun]) -> list[str]:
    """The runs that no tree has, or that ended in another way."""
    return [f"wrong: {run}" for run in runs if run.tree == 0 or TREE.get(run.key) != run.outcome]


@contextlib.asynccontextmanager
async def chain_scene(server: Server, url: str, folder: Path, migrating: asyncio.Lock) -> AsyncIterator[ChainScene]:
    """Two running admins on an empty database, and two executors.

    `migrating` is held while the schema is made: Alembic cannot do two of them in one process at once.
    """
    await asyncio.to_thread(folder.mkdir)
    log_path = folder / "log"
    scene = Scene(folder / "data", secrets.token_urlsafe(16), unused_port(), unused_port(), url, log_path)
    async with migrating:
        await make_database(scene)
    database = open_database(url, CLOCK)
    await database.start()
    await database.write(begin_ids_high)
    await database.stop()
    nodes = [Node(scene, unused_port()) for _ in range(2)]
    known = (",".join(f"http://127.0.0.1:{node.port}" for node in nodes), scene.token)
    async with contextlib.AsyncExitStack() as stack:
        hook = await stack.enter_async_context(HttpPeer(otherwise=_slowly))
        executors = (
            scene.process("tests.support.sdk_executor_process", *known, port, scene.starts_path)
            for port in (scene.executor_port, unused_port())
        )
        await asyncio.gather(*(stack.enter_async_context(each) for each in executors))
        for node in nodes:
            stack.push_async_callback(node._running.aclose)
        await asyncio.gather(*(node.start() for node in nodes))
        chains = ChainScene(server, scene, nodes, hook, random.Random(secrets.randbelow(2**32)))
        await chains.prepare()
        yield chains


async def _slowly(writer: asyncio.StreamWriter) -> None:
    """Answer after a while, so that alarms are on their way when a node is killed."""
    await CLOCK.wait(0.15)
    await reply()(writer)
