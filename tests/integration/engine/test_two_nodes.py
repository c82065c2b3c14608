"""Two admins on one server: what is asked of one holds for the runs of the other, and they share the work."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import Outcome, Phase
from jobwheel.admin.store.tables import job_log
from jobwheel.kernel.clock import Clock, SystemClock
from tests.support.live_admin import CLOCK, LiveAdmin, live_admin, seen, until
from tests.support.recording_executor import INSTANCE, Asked, RecordingExecutor
from tests.support.run_servers import Servers
from tests.support.servers import SERVER_KINDS
from tests.support.store import open_store_at

pytestmark = pytest.mark.timeout(60)

EVERY_SECOND = {"schedule_type": "CRON", "schedule_conf": "* * * * * ?"}
EVEN_SECONDS = "0/2 * * * * ?"
LIVES = 20


class FastClock(SystemClock):
    """The clocks of a host whose wall clock is off."""

    off_ms = 5000

    def now(self) -> int:
        return super().now() + self.off_ms


@pytest.fixture(params=SERVER_KINDS)
async def url(request: pytest.FixtureRequest, servers: Servers) -> str:
    async with open_store_at(servers.url_of(request.param), CLOCK):
        pass
    return servers.url_of(request.param)


@contextlib.asynccontextmanager
async def two_nodes(url: str, folder: Path, clocks: Sequence[Clock] = (CLOCK, CLOCK)) -> AsyncIterator[list[LiveAdmin]]:
    async with contextlib.AsyncExitStack() as stack:
        nodes: list[LiveAdmin] = []
        for n, clock in enumerate(clocks):
            token = nodes[0].token if nodes else None
            opened = live_admin(folder / str(n), token, clock=clock, database_url=url, database_connections=8)
            nodes.append(await stack.enter_async_context(opened))
        yield nodes


@pytest.fixture
async def nodes(url: str, tmp_path: Path) -> AsyncIterator[list[LiveAdmin]]:
    async with two_nodes(url, tmp_path) as opened:
        yield opened


def addresses(node: LiveAdmin, job: Job) -> set[str]:
    """Where this node would send the job's runs."""
    return {each.address for each in node.admin.engine.addresses.candidates(job.settings.group_id)}


async def known(nodes: Iterable[LiveAdmin], executors: Iterable[RecordingExecutor]) -> None:
    """Register the executors at the first node; return once both know them, and no others."""
    everybody = list(nodes)
    for executor in executors:
        await executor.register()
    job = await everybody[0].job()
    wanted = {executor.address for executor in executors}
    await until(lambda: all(addresses(node, job) == wanted for node in everybody))


@dataclass
class Life:
    """What was asked of a job, and which instants may, or must, have run by that (epoch milliseconds)."""

    may: list[tuple[int, int, int]] = field(default_factory=list)
    must: list[tuple[int, int, int]] = field(default_factory=list)

    def ran(self, every_ms: int, begin: tuple[int, int], end: tuple[int, int]) -> None:
        """Note a stretch with one schedule: when its begin and its end were asked for, and when answered."""
        self.may.append((every_ms, begin[0], end[1]))
        self.must.append((every_ms, begin[1] + 1, end[0]))

    @staticmethod
    def instants(stretches: Iterable[tuple[int, int, int]], margin_ms: int = 0) -> set[int]:
        return {
            instant
            for every_ms, first_ms, last_ms in stretches
            for instant in range(-(-first_ms // every_ms) * every_ms, last_ms - margin_ms + 1, every_ms)
        }


async def not_the_owner(nodes: Sequence[LiveAdmin], job: Job) -> LiveAdmin:
    """The node that does not own the job's next run, once one is planned."""
    planned = (
        select(job_log.c.owner)
        .where(job_log.c.job_id == job.id, job_log.c.phase == Phase.PENDING)
        .order_by(job_log.c.due_ms)
        .limit(1)
    )
    owner = await seen(lambda: nodes[0].admin.database.read(lambda c: c.execute(planned).scalar()))
    return next(node for node in nodes if node.admin.engine.node_id != owner)


async def asked(work: Any) -> tuple[int, int]:
    """When something was asked for, and when it was answered."""
    begun_ms = CLOCK.now()
    await work
    return begun_ms, CLOCK.now()


async def live_and_die(nodes: Sequence[LiveAdmin], source: random.Random) -> tuple[Job, Life]:
    """A job is made, edited, stopped, started again and deleted, by turns at the node that does not own its runs."""
    life = Life()
    made_ms = CLOCK.now()
    job = await source.choice(nodes).job(running=True, **EVERY_SECOND)
    begin = made_ms, CLOCK.now()
    await CLOCK.wait(source.uniform(1.5, 3))
    node = await not_the_owner(nodes, job)
    # At once at the other node: neither edit is lost.
    other = next(each for each in nodes if each is not node)
    edited, _ = await asyncio.gather(
        asked(node.admin.services.jobs.update(job.id, {"schedule_conf": EVEN_SECONDS}, version=None, actor="test")),
        other.admin.services.jobs.update(job.id, {"name": "renamed"}, version=None, actor="test"),
    )
    life.ran(1000, begin, edited)
    await CLOCK.wait(source.uniform(0, 1))
    jobs = (await not_the_owner(nodes, job)).admin.services.jobs
    stopped = await asked(jobs.stop(job.id, actor="test"))
    life.ran(2000, edited, stopped)
    found = await jobs.get(job.id)
    assert (found.running, found.settings.schedule_conf, found.settings.name) == (False, EVEN_SECONDS, "renamed")
    started = await asked(source.choice(nodes).admin.services.jobs.start(job.id, actor="test"))
    await CLOCK.wait(source.uniform(0, 1))
    jobs = (await not_the_owner(nodes, job)).admin.services.jobs
    deleted = await asked(jobs.delete(job.id, actor="test"))
    life.ran(2000, started, deleted)
    return job, life


async def test_what_is_asked_of_a_node_holds_for_the_runs_of_the_other(nodes: list[LiveAdmin]) -> None:
    source = random.Random()
    async with nodes[0].executor(instance=INSTANCE) as executor:
        await known(nodes, [executor])
        lives = await asyncio.gather(*(live_and_die(nodes, source) for _ in range(LIVES)))
        # Whatever is planned of any of them would show by then.
        last_ms = CLOCK.now()
        await until(lambda: CLOCK.now() > last_ms + 2050)
        await until(lambda: all(missing(executor, job, life) == set() for job, life in lives), 20)
        started = [(asked.body["jobId"], asked.body["scheduledTime"]) for asked in executor.runs()]
    assert len(set(started)) == len(started)
    for job, life in lives:
        assert ran(executor, job) <= life.instants(life.may), job.id


def ran(executor: RecordingExecutor, job: Job) -> set[int]:
    return {asked.body["scheduledTime"] for asked in executor.runs() if asked.body["jobId"] == job.id}


def missing(executor: RecordingExecutor, job: Job, life: Life) -> set[int]:
    """The instants that must run and have not.

    What came due shortly before an end may not have been planned, or not have taken off: then a stop or an edit leaves
    nothing to plan, and a delete removes the run. How shortly is for the machine to say: it is as late as it is.
    """
    late_ms = max((asked.at_ms - asked.body["scheduledTime"] for asked in executor.runs()), default=0)
    return life.instants(life.must, 1500 + 2 * late_ms) - ran(executor, job)


async def test_an_address_that_left_at_one_node_gets_nothing_from_the_other(nodes: list[LiveAdmin]) -> None:
    async with nodes[0].executor() as leaving, nodes[0].executor() as staying:
        await known(nodes, [leaving, staying])
        job = await nodes[0].job(route_strategy="ROUND")
        await leaving.leave()
        # Each second one: the pass that is under way may have read before, the one after it has not.
        loop = next(each for each in nodes[1].admin.engine._loops if each.name == "addresses")
        passes = loop.passes
        await until(lambda: loop.passes >= passes + 2)
        assert addresses(nodes[1], job) == {staying.address}
        run_ids = [await nodes[1].trigger(job) for _ in range(12)]
        runs = [await nodes[1].done(run_id) for run_id in run_ids]
        assert {run.executor_address for run in runs} == {staying.address}
        assert {run.outcome for run in runs} == {Outcome.SUCCEEDED}
        assert not leaving.runs()


async def test_two_nodes_balance_the_runs_of_a_job_over_three_executors(nodes: list[LiveAdmin]) -> None:
    async with contextlib.AsyncExitStack() as stack:
        executors = [await stack.enter_async_context(nodes[0].executor()) for _ in range(3)]
        await known(nodes, executors)
        strategies = ("ROUND", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED")
        jobs = [await nodes[0].job(route_strategy=strategy) for strategy in strategies]
        await asyncio.gather(*(nodes[n % 2].trigger(job) for n in range(300) for job in jobs))
        await until(lambda: sum(len(executor.started) for executor in executors) == 900, 30)
        for job in jobs:
            shares = [sum(run.body["jobId"] == job.id for run in executor.runs()) for executor in executors]
            assert sum(shares) == 300
            assert all(95 <= share <= 105 for share in shares), (job.settings.route_strategy, shares)
        assert all(node.admin.engine.collect().runs_sent == 450 for node in nodes)


async def test_the_limit_of_a_job_holds_over_two_nodes_and_two_executors(nodes: list[LiveAdmin]) -> None:
    under_way: set[int] = set()
    most = 0

    async def work(executor: RecordingExecutor, log_id: int) -> None:
        await CLOCK.wait(0.02)
        under_way.discard(log_id)
        await executor.report(log_id)

    async def answer(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
        nonlocal most
        under_way.add(asked.log_id)
        most = max(most, len(under_way))
        executor.spawn(work(executor, asked.log_id))
        return executor.envelope()

    async with nodes[0].executor(answer) as one, nodes[0].executor(answer) as two:
        await known(nodes, [one, two])
        job = await nodes[0].job(run_limit=2, route_strategy="ROUND")
        await asyncio.gather(*(nodes[n % 2].trigger(job) for n in range(40)))

        async def all_done() -> bool:
            return all(run.outcome is Outcome.SUCCEEDED for run in await nodes[0].runs(job))

        await seen(all_done, 30)
        started = [asked.log_id for executor in (one, two) for asked in executor.runs()]
        assert len(set(started)) == len(started) == 40
        assert one.runs()
        assert two.runs()
    assert most == 2
    assert all(node.admin.engine.collect().runs_sent for node in nodes)


async def reasons(node: LiveAdmin) -> set[str]:
    async with httpx.AsyncClient(base_url=node.url) as client:
        return {each["code"] for each in (await client.get("/health")).json()["reasons"]}


async def test_a_node_whose_clock_is_off_is_red_and_idle_and_the_other_keeps_every_second(
    url: str, tmp_path: Path
) -> None:
    clock = FastClock()
    async with two_nodes(url, tmp_path, [CLOCK, clock]) as (good, fast), good.executor(instance=INSTANCE) as executor:
        await known([good, fast], [executor])
        before_ms = CLOCK.now()
        job = await good.job(running=True, **EVERY_SECOND)
        after_ms = CLOCK.now()
        await until(lambda: len(executor.runs()) >= 3)
        runs = executor.runs()[:3]
        first_ms = runs[0].body["scheduledTime"]
        assert before_ms < first_ms <= after_ms + 1000
        assert [asked.body["scheduledTime"] for asked in runs] == [first_ms + 1000 * n for n in range(3)]
        # Later than that an instant is a misfire.
        assert all(0 <= asked.at_ms - asked.body["scheduledTime"] < 5000 for asked in runs)
        assert await reasons(good) == set()
        assert "clock_off" in await reasons(fast)
        assert fast.admin.engine.claims.passes == fast.admin.engine.collect().runs_sent == 0
        clock.off_ms = 0
        # An edit makes its node claim at once.
        await fast.admin.services.jobs.update(job.id, {"schedule_conf": EVEN_SECONDS}, version=None, actor="test")
        await until(lambda: fast.admin.engine.claims.passes > 0)
        assert await reasons(fast) == set()


@pytest.mark.parametrize("off_ms", [86_400_000, -86_400_000])
async def test_a_fixed_delay_counts_from_the_end_by_the_right_clock_whichever_node_hears_of_it(
    url: str, tmp_path: Path, off_ms: int
) -> None:
    clock = FastClock()
    clock.off_ms = off_ms
    async with (
        two_nodes(url, tmp_path, [CLOCK, clock]) as (good, fast),
        fast.executor(instance=INSTANCE, reports=False) as executor,
    ):
        await known([good, fast], [executor])
        job = await good.job(running=True, schedule_type="FIX_DELAY", schedule_conf="2")
        await until(lambda: bool(executor.runs()))
        before_ms = CLOCK.now()
        await executor.report(executor.runs()[0].log_id)
        after_ms = CLOCK.now()
        next_ms = (await good.admin.services.jobs.get(job.id)).next_ms
        # The server's clock is asked for the time, and the answer takes some on its way.
        assert next_ms is not None
        assert before_ms + 1900 <= next_ms <= after_ms + 2100


async def test_a_node_whose_clock_is_off_takes_nothing_over_and_sends_nothing_early(url: str, tmp_path: Path) -> None:
    clock = FastClock()
    async with (
        live_admin(tmp_path / "fast", clock=clock, database_url=url) as fast,
        fast.executor(instance=INSTANCE) as executor,
    ):
        async with live_admin(tmp_path / "good", fast.token, database_url=url) as good:
            await known([good, fast], [executor])
            job = await good.job(running=True, **EVERY_SECOND)
            await until(lambda: bool(executor.runs()))
            await good.admin.services.jobs.update(job.id, {"schedule_conf": EVEN_SECONDS}, version=None, actor="test")
            await not_the_owner([fast, good], job)
        # What it had planned for the next seconds belongs to nobody now.
        passes = fast.admin.engine._feeding.passes
        await until(lambda: fast.admin.engine._feeding.passes >= passes + 2)
        left = [run for run in await fast.runs(job) if run.phase is Phase.PENDING]
        assert left
        clock.off_ms = 0
        for run in left:
            await fast.done(run.id)
        assert {run.id for run in left} <= executor.started.keys()
        assert all(asked.at_ms >= asked.body["scheduledTime"] for asked in executor.runs())
