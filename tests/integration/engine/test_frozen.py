"""A process that was frozen and woken: what it was about to send may be another node's by then."""

import msgspec
from sqlalchemy import select, text, update

from jobwheel.admin.domain.ids import NodeId, RunId
from jobwheel.admin.domain.run import Phase
from jobwheel.admin.domain.writes import TakeOff
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.dispatcher import Flight
from jobwheel.admin.store import Connection, nodes, run_log, runs
from jobwheel.admin.store.tables import job_log
from tests.support.engine_parts import dispatch_job, pending_run
from tests.support.live_admin import LiveAdmin
from tests.support.recording_executor import RecordingExecutor
from tests.support.store import new_run


async def taken_off(live: LiveAdmin, executor: RecordingExecutor) -> Flight:
    """A run that has taken off to the executor and is not on the wire yet."""
    job = await live.job()
    node_id = live.admin.engine.node_id
    run_id = await live.trigger(job, executor.address)
    await live.done(run_id)
    executor.asked.clear()
    pending = {"phase": "pending", "outcome": None, "trigger_code": 0, "handle_code": 0, "owner": node_id}
    sent_ms = live.admin.database.now_ms()

    def take_off(connection: Connection) -> set[RunId]:
        connection.execute(update(job_log).where(job_log.c.id == run_id).values(pending))
        off = TakeOff(run_id, executor.address, "settle", "FIRST", None)
        return run_log.take_off(connection, node_id, sent_ms, [off])

    # By one write: the feeder takes whatever is pending.
    assert await live.admin.database.write(take_off) == {run_id}
    run = pending_run(run_id, job_id=job.id)
    return Flight(run, dispatch_job(id=job.id), "orders", [Candidate(executor.address, None)], "", node_id, sent_ms)


def grow_stale(live: LiveAdmin) -> None:
    """As after ten seconds of SIGSTOP."""
    live.admin.engine._context.node._beaten_s -= 11


async def test_a_woken_process_sends_what_is_still_its_own(live: LiveAdmin) -> None:
    async with live.executor() as executor:
        await executor.register()
        flight = await taken_off(live, executor)
        grow_stale(live)
        await live.admin.engine.launcher._dispatcher.send([flight])
        assert [asked.log_id for asked in executor.runs()] == [flight.run.id]
        assert live.admin.engine._context.node.is_fresh


async def test_what_cannot_be_confirmed_waits_and_is_sent_when_it_can(live: LiveAdmin) -> None:
    async with live.executor() as executor:
        await executor.register()
        flight = await taken_off(live, executor)
        refuse = text("CREATE TRIGGER refuse BEFORE UPDATE ON jobwheel_node BEGIN SELECT RAISE(ABORT, 'refused'); END")
        await live.admin.database.write(lambda c: c.execute(refuse))
        grow_stale(live)
        await live.admin.engine.launcher._dispatcher.send([flight])
        assert executor.runs() == []
        await live.run_when(flight.run.id, lambda run: run.phase is Phase.PENDING)
        await live.admin.database.write(lambda c: c.execute(text("DROP TRIGGER refuse")))
        await live.run_when(flight.run.id, lambda run: run.phase is Phase.ACCEPTED)
        assert [asked.log_id for asked in executor.runs()] == [flight.run.id]


async def test_a_woken_process_does_not_send_what_was_adopted(live: LiveAdmin) -> None:
    async with live.executor() as executor:
        await executor.register()
        flight = await taken_off(live, executor)
        grow_stale(live)
        await live.change_run(flight.run.id, phase="unconfirmed", owner=None, check_ms=None)
        await live.admin.engine.launcher._dispatcher.send([flight])
        assert executor.runs() == []
        run = await live.run(flight.run.id)
        assert (run.phase, run.outcome) == ("unconfirmed", None)


async def test_what_took_off_under_an_old_id_is_asked_about_however_fresh_the_new_one_is(live: LiveAdmin) -> None:
    async with live.executor() as executor:
        await executor.register()
        flight = await taken_off(live, executor)
        flight = msgspec.structs.replace(flight, owner=NodeId(flight.owner + 1000))
        await live.admin.engine.launcher._dispatcher.send([flight])
        assert executor.runs() == []


async def test_a_node_that_was_declared_dead_forgets_what_waits(live: LiveAdmin) -> None:
    engine = live.admin.engine
    engine.wheel.add([pending_run(1000, live.admin.services.clock.now() + 60_000)])
    assert len(engine.wheel) == 1
    before = engine.node_id
    await live.admin.database.write(nodes.unregister, before)
    await engine._context.node.beat()
    assert engine.node_id > before
    assert len(engine.wheel) == 0


async def declared_dead(live: LiveAdmin) -> NodeId:
    """The node's id after it was declared dead in its sleep; it does by hand only what it does from here on."""
    engine = live.admin.engine
    for loop in engine._loops:
        await loop.stop()
    await live.admin.database.write(nodes.unregister, engine.node_id)
    grow_stale(live)
    return engine.node_id


async def owners(live: LiveAdmin) -> list[int | None]:
    return list(await live.admin.database.read(lambda c: c.execute(select(job_log.c.owner)).scalars().all()))


async def test_a_woken_process_plans_under_the_id_that_lives(live: LiveAdmin) -> None:
    async with live.executor() as executor:
        await executor.register()
    job = await live.job(running=True, schedule_type="FIX_RATE", schedule_conf="60")
    dead = await declared_dead(live)
    await live.change_job(job.id, trigger_next_time=live.admin.services.clock.now() + 2000)
    await live.admin.engine._claim()
    assert live.admin.engine.node_id > dead
    assert await owners(live) == [live.admin.engine.node_id]


async def test_a_woken_process_takes_over_under_the_id_that_lives(live: LiveAdmin) -> None:
    engine = live.admin.engine
    dead = await declared_dead(live)
    run = new_run(None, live.admin.services.clock.now() + 4000)
    await live.admin.database.write(runs.insert_runs, live.admin.installation.zone, [run])
    feeder = next(loop for loop in engine._loops if loop.name == "feeder")
    await feeder._run_once()
    assert engine.node_id > dead
    assert await owners(live) == [engine.node_id]
