"""Pending runs: written, read, adopted, released, removed."""

import pytest

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.run import TriggerType
from jobwheel.admin.domain.writes import TakeOff
from jobwheel.admin.store import nodes, run_log, runs
from tests.support.store import ADDRESS, FIRST_LOOKS, INSTANCE, NOW_MS, Store, new_run, take_off

OTHER = NodeId(2**40)


async def test_a_written_run_is_read_back_whole(store: Store) -> None:
    node = await store.node()
    written = await store.pending(
        node,
        NOW_MS + 750,
        job_id=7,
        group_id=3,
        trigger_type=TriggerType.MANUAL,
        due_ms=NOW_MS + 900,
        parameter="Tag=2, 'ü\N{ROCKET}",
        named_addresses=("http://a:1/", "http://b:2"),
    )
    assert await store.database.read(runs.load_pending, node, [written[0].id]) == written


async def test_codes_stay_zero_and_times_are_the_installations(store: Store) -> None:
    run = (await store.pending(await store.node()))[0]
    row = await store.run_row(run.id)
    assert (row["trigger_code"], row["handle_code"], row["outcome"], row["phase"]) == (0, 0, None, "pending")
    # 02:30:00.250Z, in the zone of the installation (+08:00), not of the host (+05:45), without the fraction.
    assert row["trigger_time"].isoformat() == "2026-11-27T10:30:00"
    assert (row["planned_ms"], row["due_ms"], row["triggered_ms"]) == (NOW_MS, NOW_MS, NOW_MS - 250)


async def test_ids_are_given_in_the_order_of_the_runs(store: Store) -> None:
    written = await store.pending(await store.node(), *(NOW_MS + n for n in range(50)))
    ids = [run.id for run in written]
    assert ids == sorted(set(ids))
    for run in written:
        assert (await store.run_row(run.id))["planned_ms"] == run.planned_ms


async def test_an_id_never_comes_back(store: Store) -> None:
    node = await store.node()
    last = (await store.pending(node, *(NOW_MS + n for n in range(3)), job_id=4))[-1].id
    await store.database.write(runs.remove_pending, JobId(4))
    assert (await store.pending(node))[0].id > last


async def test_nothing_to_write_is_nothing(store: Store) -> None:
    assert await store.database.write(runs.insert_runs, store.zone, []) == []


async def test_a_failed_transaction_leaves_no_run_and_no_gap_that_matters(store: Store) -> None:
    node = await store.node()

    def write_and_fail(connection: object) -> None:
        runs.insert_runs(connection, store.zone, [new_run(node)])  # type: ignore[arg-type]
        raise LookupError

    with pytest.raises(LookupError):
        await store.database.write(write_and_fail)
    assert await store.database.read(runs.own_pending_ids, node, NOW_MS, 10) == []
    kept = (await store.pending(node))[0].id
    assert await store.database.read(runs.own_pending_ids, node, NOW_MS, 10) == [kept]


async def test_own_ids_come_earliest_first_up_to_the_horizon_and_the_limit(store: Store) -> None:
    node = await store.node()
    written = await store.pending(node, NOW_MS + 30, NOW_MS + 10, NOW_MS + 20, NOW_MS + 31)
    await store.pending(OTHER, NOW_MS)
    await store.pending(None, NOW_MS)
    read = await store.database.read(runs.own_pending_ids, node, NOW_MS + 30, 10)
    assert read == [written[1].id, written[2].id, written[0].id]
    assert await store.database.read(runs.own_pending_ids, node, NOW_MS + 30, 2) == read[:2]


async def test_only_own_pending_runs_are_loaded(store: Store) -> None:
    node = await store.node()
    foreign = (await store.pending(OTHER))[0].id
    gone = await store.sending(node)
    mine = (await store.pending(node))[0].id
    loaded = await store.database.read(runs.load_pending, node, [foreign, gone, mine, RunId(4711)])
    assert [run.id for run in loaded] == [mine]


async def test_ownerless_runs_are_adopted_earliest_first_and_no_others(store: Store) -> None:
    node = await store.node()
    later, earlier, far = await store.pending(None, NOW_MS + 2, NOW_MS + 1, NOW_MS + 500)
    foreign = (await store.pending(OTHER))[0]
    assert await store.database.read(runs.has_ownerless, NOW_MS + 2)
    assert await store.database.write(runs.adopt_ownerless, node, NOW_MS + 2, 1) == 1
    assert await store.database.read(runs.own_pending_ids, node, NOW_MS + 999, 10) == [earlier.id]
    assert await store.database.write(runs.adopt_ownerless, node, NOW_MS + 2, 10) == 1
    assert await store.database.read(runs.own_pending_ids, node, NOW_MS + 999, 10) == [earlier.id, later.id]
    assert not await store.database.read(runs.has_ownerless, NOW_MS + 2)
    assert await store.database.write(runs.adopt_ownerless, node, NOW_MS + 2, 10) == 0
    assert (await store.run_row(far.id))["owner"] is None
    assert (await store.run_row(foreign.id))["owner"] == OTHER


async def test_a_graceful_stop_gives_up_pending_runs_alone(store: Store) -> None:
    node = await store.node()
    pending = (await store.pending(node))[0].id
    foreign = (await store.pending(OTHER))[0].id
    sending = await store.sending(node)
    assert await store.database.write(runs.release_pending, node) == 1
    assert (await store.run_row(pending))["owner"] is None
    assert (await store.run_row(foreign))["owner"] == OTHER
    assert (await store.run_row(sending))["owner"] == node


async def test_a_stop_removes_what_the_schedule_caused_and_planned_after_now(store: Store) -> None:
    node = await store.node()
    planned = await store.pending(node, NOW_MS, NOW_MS + 2000, NOW_MS + 1000, job_id=5)
    missed = (await store.pending(node, NOW_MS - 60_000, job_id=5, trigger_type=TriggerType.MISFIRE))[0]
    manual = (await store.pending(node, NOW_MS + 1000, job_id=5, trigger_type=TriggerType.MANUAL))[0]
    other = (await store.pending(node, NOW_MS + 1000, job_id=6))[0]
    under_way = await store.sending(node, job_id=5)
    await store.change_run(under_way, planned_ms=NOW_MS + 1000)
    removed = await store.database.write(runs.remove_planned, JobId(5), NOW_MS)
    assert [(run.id, run.planned_ms) for run in removed] == [
        (planned[2].id, NOW_MS + 1000),
        (planned[1].id, NOW_MS + 2000),
    ]
    for kept in (planned[0].id, missed.id, manual.id, other.id, under_way):
        assert await store.run_row(kept)


async def test_a_delete_removes_every_pending_run_of_the_job(store: Store) -> None:
    node = await store.node()
    await store.pending(node, NOW_MS, job_id=5)
    await store.pending(None, NOW_MS + 1, job_id=5, trigger_type=TriggerType.API)
    other = (await store.pending(node, job_id=6))[0]
    under_way = await store.sending(node, job_id=5)
    assert len(await store.database.write(runs.remove_pending, JobId(5))) == 2
    assert await store.run_row(other.id)
    assert await store.run_row(under_way)


async def test_open_runs_are_those_with_a_phase(store: Store) -> None:
    node = await store.node()
    assert not await store.database.read(runs.has_open_runs, JobId(5))
    run_id = await store.sending(node, job_id=5)
    for phase in ("pending", "sending", "unconfirmed", "accepted"):
        await store.change_run(run_id, phase=phase)
        assert await store.database.read(runs.has_open_runs, JobId(5))
    await store.change_run(run_id, phase=None, outcome="failed")
    assert not await store.database.read(runs.has_open_runs, JobId(5))


async def test_take_off_wants_its_own_pending_run(store: Store) -> None:
    node = await store.node()
    mine, foreign, ownerless = [(await store.pending(owner))[0].id for owner in (node, OTHER, None)]
    gone = (await store.pending(node, job_id=8))[0].id
    await store.database.write(runs.remove_pending, JobId(8))
    wanted = [take_off(run_id, INSTANCE) for run_id in (mine, foreign, ownerless, gone)]
    assert await store.database.write(run_log.take_off, node, NOW_MS + 5, wanted) == {mine}
    assert await store.database.write(run_log.take_off, node, NOW_MS + 9, wanted) == set()
    row = await store.run_row(mine)
    assert (row["phase"], row["owner"], row["sent_ms"]) == ("sending", node, NOW_MS + 5)
    assert (row["executor_address"], row["executor_handler"], row["route"]) == (ADDRESS, "settle", "FIRST")
    assert row["instance_id"] == INSTANCE
    assert (await store.run_row(foreign))["phase"] == "pending"


async def redirect(store: Store, node: NodeId, *moves: tuple[TakeOff, str]) -> set[RunId]:
    return await store.database.write(run_log.redirect, node, moves)


async def test_a_redirect_wants_its_own_run_at_the_address_it_leaves(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node, instance_id=INSTANCE)
    there = take_off(run_id, None, "http://10.0.0.8:9999/")
    assert await redirect(store, OTHER, (there, ADDRESS)) == set()
    assert await redirect(store, node, (there, "http://10.0.0.9:9999/")) == set()
    assert (await store.run_row(run_id))["executor_address"] == ADDRESS
    assert await redirect(store, node, (there, ADDRESS)) == {run_id}
    assert await redirect(store, node, (there, ADDRESS)) == set()
    row = await store.run_row(run_id)
    assert (row["executor_address"], row["instance_id"]) == (there.address, None)


async def test_of_several_redirects_those_that_match_are_made(store: Store) -> None:
    node = await store.node()
    first, gone, last = [await store.sending(node) for _ in range(3)]
    await store.change_run(gone, phase="accepted")
    moves = [(take_off(run_id, None, "http://10.0.0.8:9999/"), ADDRESS) for run_id in (last, gone, first)]
    assert await redirect(store, node, *moves) == {first, last}
    assert (await store.run_row(gone))["executor_address"] == ADDRESS


@pytest.mark.parametrize("phase", ["unconfirmed", "accepted", None])
async def test_no_redirect_once_the_run_has_left_sending(store: Store, phase: str | None) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.change_run(run_id, phase=phase)
    assert await redirect(store, node, (take_off(run_id, None, "http://b/"), ADDRESS)) == set()


async def test_runs_without_a_job_are_removed_while_pending_and_own(store: Store) -> None:
    node = await store.node()
    mine, foreign = [(await store.pending(owner))[0].id for owner in (node, OTHER)]
    under_way = await store.sending(node)
    await store.database.write(runs.remove_runs_without_job, node, [mine, foreign, under_way])
    assert await store.database.read(runs.load_pending, node, [mine]) == []
    assert await store.run_row(foreign)
    assert await store.run_row(under_way)


async def test_the_only_node_adopts_everything(store: Store) -> None:
    node = await store.node()
    pending = [(await store.pending(owner))[0].id for owner in (OTHER, None, node)]
    ours = await store.sending(OTHER, instance_id=INSTANCE)
    others = await store.sending(OTHER)
    accepted = await store.sending(OTHER)
    await store.change_run(accepted, phase="accepted", owner=None)
    own = await store.sending(node)
    adopted = await store.database.write(nodes.adopt_all, node, NOW_MS, FIRST_LOOKS)
    assert (adopted.pending, adopted.unconfirmed) == (2, 2)
    assert [(await store.run_row(each))["owner"] for each in pending] == [node] * 3
    for run_id, check_ms in ((ours, NOW_MS), (others, NOW_MS + 60_000)):
        row = await store.run_row(run_id)
        assert (row["phase"], row["owner"], row["unheard_ms"], row["check_ms"]) == (
            "unconfirmed",
            None,
            NOW_MS,
            check_ms,
        )
    assert (await store.run_row(accepted))["phase"] == "accepted"
    assert (await store.run_row(own))["phase"] == "sending"


async def test_jobs_are_read_as_they_are_at_take_off(store: Store) -> None:
    job_id = await store.job(executor_timeout=9, executor_handler=None, executor_route_strategy="NONSENSE")
    jobs = await store.database.read(runs.load_dispatch_jobs, store.zone, [job_id, JobId(4711)])
    assert list(jobs) == [job_id]
    assert (jobs[job_id].handler, jobs[job_id].timeout_s, jobs[job_id].route_strategy) == ("", 9, "NONSENSE")
    assert jobs[job_id].script is None
