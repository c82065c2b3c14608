"""The claim of jobs with pause windows, a validity period, and FIRE_ALL."""

from collections.abc import Sequence

import pytest
from sqlalchemy import insert

from jobwheel.admin.domain.ids import JobId, NodeId
from jobwheel.admin.domain.job import PauseWindow
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import Outcome, PendingRun
from jobwheel.admin.domain.writes import Settlement
from jobwheel.admin.engine.claim import ClaimLimits
from jobwheel.admin.engine.claimer import Claimer
from jobwheel.admin.store import claims, pause_windows
from jobwheel.admin.store.events import list_job_events
from jobwheel.admin.store.tables import pause_window
from tests.support.store import NOW_MS, Store

SECOND_MS = NOW_MS - 250
NODE = NodeId(1)


async def claim(store: Store, most_runs: int = 1000, most_made_up: int = 100) -> list[PendingRun]:
    """The runs of one pass."""
    flown: list[PendingRun] = []

    def fly(runs: Sequence[PendingRun]) -> None:
        flown.extend(runs)

    limits = ClaimLimits(5.0, most_runs, most_made_up)
    await Claimer(store.database, store.zone, store.clock, lambda: NODE, fly, limits).run_once()
    return flown


async def pause(store: Store, job_id: JobId, from_s: float, until_s: float) -> None:
    """A window in seconds from `SECOND_MS`."""
    values = {"job_id": job_id, "from_ms": SECOND_MS + 1000 * from_s, "until_ms": SECOND_MS + 1000 * until_s}
    await store.database.write(lambda c: c.execute(insert(pause_window).values(values)))


async def events_of(store: Store, job_id: JobId) -> list[tuple[str, object]]:
    """(kind, how many instants), oldest first."""
    events = await store.database.read(list_job_events, job_id, None, 100)
    return [(each.kind, each.details.get("count")) for each in reversed(events)]


async def test_windows_are_read_of_the_jobs_that_are_asked_for(store: Store) -> None:
    one, other, bare = [await store.job() for _ in range(3)]
    for job_id, from_s in ((one, 7), (other, 1), (one, 3)):
        await pause(store, job_id, from_s, from_s + 1)
    found = await store.database.read(pause_windows.read_windows, [one, bare])
    assert found == {one: tuple(PauseWindow(SECOND_MS + 1000 * s, SECOND_MS + 1000 * (s + 1)) for s in (3, 7))}
    later = await store.database.read(pause_windows.read_windows, [one, other], SECOND_MS + 4000)
    assert later == {one: (PauseWindow(SECOND_MS + 7000, SECOND_MS + 8000),)}
    assert await store.database.read(pause_windows.read_windows, []) == {}


async def test_a_due_job_comes_with_its_limits(store: Store) -> None:
    job_id = await store.job(valid_from_ms=5, valid_until_ms=SECOND_MS + 9000)
    for span in ((-9, 0), (-9, 1), (20, 30)):
        await pause(store, job_id, *span)
    (job,) = await store.database.read(claims.due_jobs, SECOND_MS, 10)
    assert (job.valid_from_ms, job.valid_until_ms) == (5, SECOND_MS + 9000)
    # The first one ended before the job's next time, at which it is looked at.
    ends = [(each.until_ms - SECOND_MS) // 1000 for each in job.pause_windows]
    assert ends == [1, 30]


async def test_a_claim_plans_nothing_in_a_window_and_the_others_as_ever(store: Store) -> None:
    paused, free = await store.job(), await store.job()
    await pause(store, paused, 1, 4)
    runs = await claim(store)
    planned = {job_id: [run.planned_ms for run in runs if run.job_id == job_id] for job_id in (paused, free)}
    assert planned[paused] == [SECOND_MS + 1000 * each for each in (0, 4, 5)]
    assert planned[free] == list(range(SECOND_MS, SECOND_MS + 5001, 1000))


async def test_the_end_of_the_validity_period_stops_the_job_with_its_event(store: Store) -> None:
    job_id = await store.job(valid_until_ms=SECOND_MS + 2000)
    assert len(await claim(store)) == 2
    row = await store.job_row(job_id)
    assert (row["trigger_status"], row["trigger_next_time"]) == (0, 0)
    assert await events_of(store, job_id) == [("job.finished", None)]


async def test_a_fix_delay_that_is_settled_into_a_window_moves_to_its_end(store: Store) -> None:
    job_id = await store.job(schedule_type="FIX_DELAY", schedule_conf="1")
    await pause(store, job_id, 0.5, 3600)
    (run,) = await claim(store)
    ended = Settlement(run.id, NOW_MS, 200, Outcome.SUCCEEDED, "")
    await store.change_run(run.id, phase="accepted")
    assert (await store.apply(NODE, ended)).rescheduled
    assert (await store.job_row(job_id))["trigger_next_time"] == NOW_MS + 1000
    assert await claim(store) == []
    row = await store.job_row(job_id)
    assert (row["trigger_status"], row["trigger_next_time"]) == (1, SECOND_MS + 3_600_000)
    assert await events_of(store, job_id) == []


async def test_a_fix_delay_that_is_settled_after_its_end_stops_with_its_event(store: Store) -> None:
    job_id = await store.job(schedule_type="FIX_DELAY", schedule_conf="1", valid_until_ms=SECOND_MS)
    assert await claim(store) == []
    assert (await store.job_row(job_id))["trigger_status"] == 0
    assert await events_of(store, job_id) == [("job.finished", None)]


@pytest.mark.parametrize("most_runs", [1, 2, 7, 1000])
async def test_fire_all_makes_up_what_a_transaction_has_no_room_for(store: Store, most_runs: int) -> None:
    jobs = [await store.job(misfire_strategy="FIRE_ALL", trigger_next_time=SECOND_MS - 60_000) for _ in range(3)]
    runs = await claim(store, most_runs, 10)
    for job_id in jobs:
        made_up = [run for run in runs if run.job_id == job_id and run.trigger_type == "MISFIRE"]
        assert [run.planned_ms for run in made_up] == list(range(SECOND_MS - 14_000, SECOND_MS - 4999, 1000))
        assert {run.due_ms for run in made_up} == {NOW_MS}
        planned = [run.planned_ms for run in runs if run.job_id == job_id and run.trigger_type == "CRON"]
        assert planned == list(range(SECOND_MS - 4000, SECOND_MS + 5001, 1000))
        # The parts of the record make up the whole: 56 instants, of which ten run.
        events = await store.database.read(list_job_events, job_id, None, 100)
        details = [each.details for each in events if each.kind == "job.misfired"]
        assert most_runs < 1000 or len(details) == 1
        assert sum(int(str(each["count"])) for each in details) == 56
        assert sum(int(str(each["runs"])) for each in details) == 10


async def test_a_fix_delay_fires_all_by_firing_once(store: Store) -> None:
    job_id = await store.job(
        schedule_type="FIX_DELAY",
        schedule_conf="1",
        misfire_strategy="FIRE_ALL",
        trigger_next_time=SECOND_MS - 60_000,
    )
    assert [(run.planned_ms, run.due_ms) for run in await claim(store)] == [(SECOND_MS - 60_000, NOW_MS)]
    assert (await store.job_row(job_id))["trigger_next_time"] == AWAITING_SETTLEMENT_MS
    assert await events_of(store, job_id) == [("job.misfired", 1)]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE jobwheel_pause_window SET from_ms = 'soon' WHERE job_id = ?",
        "UPDATE jobwheel_pause_window SET until_ms = 'late' WHERE job_id = ?",
        "UPDATE xxl_job_info SET valid_from_ms = 'soon' WHERE id = ?",
        "UPDATE xxl_job_info SET valid_until_ms = x'ff00' WHERE id = ?",
    ],
)
async def test_limits_of_another_type_stop_that_job_alone(store: Store, statement: str) -> None:
    if store.database.kind != "sqlite":
        pytest.skip("only SQLite stores any type in any column")
    bad, good = await store.job(), await store.job()
    for job_id in (bad, good):
        await pause(store, job_id, 100, 200)
    await store.database.write(lambda c: c.exec_driver_sql(statement, (bad,)))
    assert {run.job_id for run in await claim(store)} == {good}
    assert await events_of(store, bad) == [("job.corrupt", None)]
