import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest

from jobwheel.admin.domain.ids import JobId, RunId
from jobwheel.admin.domain.writes import Accepted
from jobwheel.admin.engine.context import EngineContext, EngineLimits
from jobwheel.admin.engine.engine import Engine
from jobwheel.admin.engine.executor_client import ExecutorClient
from jobwheel.admin.engine.figures import Counters
from jobwheel.admin.engine.node import Node
from jobwheel.admin.store import nodes
from jobwheel.kernel.fake_clock import FakeClock
from jobwheel.kernel.secret import Secret
from jobwheel.wire.client import WireClient
from tests.support.engine_parts import NOW_MS, pending_run
from tests.support.eventually import eventually
from tests.support.store import Store


@pytest.fixture
async def engine(store: Store, clock: FakeClock) -> AsyncIterator[Engine]:
    """An engine that is built and not started."""
    node = Node(store.database, clock)
    context = EngineContext(store.database, store.zone, clock, node, Counters(), EngineLimits())
    made = Engine(context, ExecutorClient(WireClient(clock), Secret(secrets.token_urlsafe(16)), 3.0))
    yield made
    await made.stop()


async def test_a_first_pass_that_never_ends_is_no_good_health(engine: Engine, clock: FakeClock) -> None:
    assert engine.reasons() == []
    await clock.advance(15)
    assert engine.reasons() == []
    await clock.advance(0.1)
    assert [reason.code for reason in engine.reasons()] == ["no_scheduling_pass"]
    assert engine.collect().last_pass_age_s is None


async def test_a_pass_makes_it_well_again_and_silence_ill(engine: Engine, clock: FakeClock) -> None:
    await clock.advance(60)
    engine.claims.last_success_s = clock.monotonic()
    assert engine.reasons() == []
    await clock.advance(15.1)
    assert [reason.code for reason in engine.reasons()] == ["no_scheduling_pass"]


async def test_loops_that_fail_three_times_in_a_row_are_named(engine: Engine) -> None:
    loop = engine._loops[0]
    loop.failures_in_a_row, loop.last_error = 2, "OSError: disk"
    assert engine.reasons() == []
    loop.failures_in_a_row = 3
    assert [reason.message for reason in engine.reasons()] == [f"the {loop.name} loop failed 3 times: OSError: disk"]


async def test_runs_of_a_slow_job_queue_in_the_slow_lane_until_the_minute_ends(
    engine: Engine, clock: FakeClock
) -> None:
    launcher = engine.launcher
    fast, slow = launcher.lanes
    for _ in range(11):
        launcher._slow_jobs.note(JobId(7), 0.6, clock.now())
    launcher.submit([pending_run(1), pending_run(2, job_id=JobId(7)), pending_run(3)])
    assert ([run.id for run in fast.take(9)], [run.id for run in slow.take(9)]) == ([1, 3], [2])
    await clock.advance(60)
    launcher.submit([pending_run(4, job_id=JobId(7))])
    assert ([run.id for run in fast.take(9)], slow.take(9)) == ([4], [])


async def test_the_hosts_clock_against_the_databases(engine: Engine, clock: FakeClock) -> None:
    clock.step(-2.5)
    assert engine.collect().clock_difference_s == -2.5


async def test_how_late_runs_are_sent_falls_into_buckets() -> None:
    counters = Counters()
    for lateness_s in (0.0, 0.001, 0.0011, 3.0, 500.0):
        counters.sent(lateness_s)
    lateness = counters.lateness()
    assert counters.runs_sent == sum(lateness.counts) == 5
    assert (lateness.counts[0], lateness.counts[1], lateness.counts[-1]) == (2, 1, 1)
    assert lateness.upper_bounds_s[lateness.counts.index(1, 2)] == 5.0
    assert lateness.sum_s == pytest.approx(503.0021)


async def test_a_node_beats_and_leaves(store: Store, clock: FakeClock) -> None:
    node = Node(store.database, clock)
    await node.start()
    run = (await store.pending(node.id))[0]
    # The first beat has been written, by a thread, and the next one is waited for.
    await eventually(lambda: clock.waiting > 0)
    await clock.advance(7)
    async with asyncio.timeout(5):
        while await _beats(store) != [NOW_MS + 5000]:
            pass
    await node.stop()
    assert await store.database.read(nodes.live_nodes) == []
    assert (await store.run_row(run.id))["owner"] is None


async def _beats(store: Store) -> list[int]:
    return [beat_ms for _, _, beat_ms in await store.database.read(nodes.live_nodes)]


async def test_sends_are_behind_when_a_claims_worth_waits_before_or_after_them(engine: Engine) -> None:
    lane = engine.launcher.lanes[1]
    lane.put([pending_run(n) for n in range(999)])
    assert not engine.is_behind()
    lane.put([pending_run(999)])
    assert engine.is_behind()
    lane.take(500)
    assert not engine.is_behind()
    for n in range(1000):
        assert not engine.is_behind()
        engine.writer.add(Accepted(RunId(n), NOW_MS, None, ""))
    assert engine.is_behind()
