"""The claim, whole: due jobs in, next times, pending runs and events out, in one transaction."""

import pytest
from sqlalchemy import delete, insert, select

from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.engine.claim import ClaimLimits, jobs_to_claim, write_plans
from jobwheel.admin.engine.pace import claimed_ahead_s
from jobwheel.admin.store import claims, runs
from jobwheel.admin.store.events import list_job_events
from jobwheel.admin.store.jobs import JobFilter, list_jobs
from jobwheel.admin.store.run_list import RunFilter, list_runs
from jobwheel.admin.store.tables import job_info, job_lock
from jobwheel.kernel.fake_clock import FakeClock
from tests.support.claims import NODE, Claims, events_of
from tests.support.store import JOB_COLUMNS, NOW_MS, Store

SECOND_MS = NOW_MS - 250


async def test_due_jobs_come_earliest_first_up_to_horizon_and_limit(store: Store) -> None:
    late, early = [await store.job(trigger_next_time=SECOND_MS + n) for n in (2, 1)]
    await store.job(trigger_next_time=SECOND_MS + 3)
    await store.job(trigger_next_time=SECOND_MS, trigger_status=0)
    await store.job(trigger_next_time=AWAITING_SETTLEMENT_MS)
    due = await store.database.read(claims.due_jobs, SECOND_MS + 2, 10)
    assert [job.id for job in due] == [early, late]
    assert [job.id for job in await store.database.read(claims.due_jobs, SECOND_MS + 2, 1)] == [early]


async def test_a_due_job_is_read_as_it_stands(store: Store) -> None:
    await store.job(executor_param=None, schedule_conf=None, misfire_strategy="PERHAPS", time_zone="UTC", anchor_ms=5)
    job = (await store.database.read(claims.due_jobs, SECOND_MS, 10))[0]
    assert (job.parameter, job.schedule_conf, job.misfire_strategy) == ("", "", "PERHAPS")
    assert (job.time_zone, job.anchor_ms, job.next_ms, job.schedule_type) == ("UTC", 5, SECOND_MS, "CRON")


@pytest.mark.parametrize("change", [{"trigger_status": 0}, {"trigger_next_time": SECOND_MS + 1}, {"version": 1}])
async def test_only_a_job_that_is_still_as_it_was_read_is_moved_on(store: Store, change: dict[str, object]) -> None:
    changed, kept = await store.job(), await store.job()
    await store.change_job(changed, **change)
    moves = [(job_id, SECOND_MS, 0, SECOND_MS, SECOND_MS + 9000, True) for job_id in (changed, kept)]
    assert await store.database.write(claims.move_on, moves) == {kept}
    assert (await store.job_row(kept))["trigger_next_time"] == SECOND_MS + 9000
    assert (await store.job_row(changed))["trigger_next_time"] == change.get("trigger_next_time", SECOND_MS)


@pytest.mark.parametrize(
    "edit", [{"executor_param": "day=2"}, {"schedule_conf": "0/2 * * * * ?"}], ids=["parameter", "schedule"]
)
async def test_a_claim_that_read_before_an_edit_plans_nothing_though_the_next_time_is_the_same(
    store: Store, edit: dict[str, object]
) -> None:
    job_id = await store.job()
    limits = ClaimLimits()
    (read,) = await store.database.read(jobs_to_claim, store.clock, limits, 10, set())
    await store.change_job(job_id, version=read.version + 1, **edit)
    claimed = await store.database.write(write_plans, store.zone, NODE, [read], NOW_MS, limits)
    assert (claimed.runs, claimed.works) == ([], False)
    made = Claims(store)
    await made.planned()
    assert made.flown
    assert {run.parameter for run in made.flown} == {edit.get("executor_param", "day=1")}


async def test_a_missing_lock_row_is_made_anew(store: Store) -> None:
    made = Claims(store)
    for _ in range(2):
        await store.database.write(lambda c: c.execute(delete(job_lock)))
        await made.claimer.run_once()
        names = await store.database.read(lambda c: c.execute(select(job_lock.c.lock_name)).scalars().all())
        assert names == ["schedule_lock"]


async def test_a_claim_writes_runs_and_moves_the_job_on(store: Store) -> None:
    job_id = await store.job(job_group=3)
    made = Claims(store)
    assert await made.planned() == list(range(SECOND_MS, SECOND_MS + 5001, 1000))
    row = await store.job_row(job_id)
    assert (row["trigger_next_time"], row["trigger_last_time"], row["trigger_status"]) == (
        SECOND_MS + 6000,
        SECOND_MS + 5000,
        1,
    )
    stored = await store.database.read(list_runs, RunFilter(job_id=job_id), None, 100)
    assert sorted(run.id for run in stored) == [run.id for run in made.flown]
    assert {(run.phase, run.group_id, run.parameter) for run in stored} == {("pending", 3, "day=1")}
    assert (await store.run_row(made.flown[0].id))["owner"] == NODE
    assert await made.planned() == []
    assert await events_of(store, job_id) == []


@pytest.mark.parametrize(("look_ahead_s", "ahead_s"), [(1, 1), (2, 2), (3, 2), (5, 3), (60, 36)])
def test_a_job_is_claimed_well_before_its_time(look_ahead_s: float, ahead_s: float) -> None:
    assert claimed_ahead_s(look_ahead_s) == ahead_s


async def test_a_job_of_every_second_is_claimed_each_few_seconds_and_no_instant_is_late(store: Store) -> None:
    clock = store.clock
    assert isinstance(clock, FakeClock)
    await store.job()
    made = Claims(store, claimed_ahead_s=claimed_ahead_s(5.0))
    passes = 0
    instants: list[int] = []
    for _ in range(20):
        planned = await made.planned()
        passes += bool(planned)
        # Those of the first pass were due already.
        assert not instants or all(instant - clock.now() >= 1000 for instant in planned)
        instants += planned
        await clock.advance(1.0)
    assert instants == [SECOND_MS + 1000 * n for n in range(len(instants))]
    assert instants[-1] > clock.now()
    assert passes <= 10


async def test_while_sends_are_behind_claims_come_in_pieces_and_leave_what_has_time(store: Store) -> None:
    hourly = {"schedule_type": "FIX_RATE", "schedule_conf": "3600"}
    due = [await store.job(**hourly, trigger_next_time=NOW_MS + n * 100) for n in (11, 12, 15, 19, 20)]
    later = [await store.job(**hourly, trigger_next_time=NOW_MS + n * 100) for n in (21, 30)]
    made = Claims(store, most_runs=8, claimed_ahead_s=3.0)
    made.is_behind = True
    await made.planned()
    assert [run.job_id for run in made.flown] == due
    assert max(made.pieces) == 2
    made.is_behind = False
    await made.planned()
    assert [run.job_id for run in made.flown] == later
    assert await made.planned() == []


async def test_a_pass_that_others_are_waiting_for_yields_from_its_next_piece_on(store: Store) -> None:
    for _ in range(20):
        await store.job(schedule_type="FIX_RATE", schedule_conf="3600", trigger_next_time=NOW_MS + 1500)
    made = Claims(store, most_runs=8)
    made.falls_behind = True
    assert len(await made.planned()) == 20
    assert made.pieces[:2] == [8, 2]


async def test_planning_that_is_nearly_late_lets_nobody_go_first(store: Store) -> None:
    """What it is late with by five seconds is a misfire: sends may be as late as they are."""
    hourly = {"schedule_type": "FIX_RATE", "schedule_conf": "3600"}
    for n in range(20):
        await store.job(**hourly, trigger_next_time=NOW_MS + (900 if n < 10 else 1900))
    made = Claims(store, most_runs=8, claimed_ahead_s=3.0)
    made.is_behind = True
    assert len(await made.planned()) == 20
    assert made.pieces[:4] == [2, 8, 8, 2]


async def test_the_runs_of_a_claim_lie_in_the_log_in_the_order_in_which_they_are_due(store: Store) -> None:
    """Thousands of runs of one instant are sent and answered together: few pages hold them."""
    jobs = [await store.job(trigger_next_time=SECOND_MS + n) for n in (3, 1, 2)]
    made = Claims(store)
    await made.planned()
    by_id = sorted(made.flown, key=lambda run: run.id)
    assert made.flown == by_id
    assert [run.due_ms for run in by_id] == sorted(run.due_ms for run in by_id)
    assert [run.job_id for run in by_id[:3]] == [jobs[1], jobs[2], jobs[0]]


@pytest.mark.parametrize("most", [1, 2, 7])
async def test_small_batches_plan_everything_that_is_due(store: Store, most: int) -> None:
    jobs = [await store.job() for _ in range(5)]
    assert sorted(await Claims(store, most).planned()) == sorted(list(range(SECOND_MS, SECOND_MS + 5001, 1000)) * 5)
    for job_id in jobs:
        assert (await store.job_row(job_id))["trigger_next_time"] == SECOND_MS + 6000


async def test_a_misfire_leaves_its_event_and_a_last_instant_ends_the_job(store: Store) -> None:
    job_id = await store.job(
        schedule_type="ONCE",
        schedule_conf="2026-11-27T02:00:00Z",
        trigger_next_time=SECOND_MS - 1_800_000,
        misfire_strategy="FIRE_ONCE_NOW",
    )
    made = Claims(store)
    assert await made.planned() == [SECOND_MS - 1_800_000]
    run = made.flown[0]
    assert (run.trigger_type, run.due_ms, run.triggered_ms) == ("MISFIRE", NOW_MS, SECOND_MS)
    row = await store.job_row(job_id)
    assert (row["trigger_status"], row["trigger_next_time"]) == (0, 0)
    assert await events_of(store, job_id) == ["job.finished", "job.misfired"]
    misfired = (await store.database.read(list_job_events, job_id, None, 100))[1]
    assert misfired.details == {
        "count": 1,
        "more": False,
        "from": "2026-11-27T02:00:00.000Z",
        "until": "2026-11-27T02:00:00.000Z",
        "strategy": "FIRE_ONCE_NOW",
        "runs": 1,
    }


@pytest.mark.parametrize(
    "columns",
    [
        {"schedule_conf": "not a cron"},
        {"schedule_conf": None},
        {"schedule_type": "NONSENSE"},
        {"time_zone": "Atlantis"},
        {"misfire_strategy": "PERHAPS", "trigger_next_time": SECOND_MS - 60_000},
        {"misfire_strategy": "PERHAPS"},
        {"misfire_strategy": ""},
        {"executor_route_strategy": "SOMEWHERE"},
        {"executor_route_strategy": ""},
        {"schedule_type": ""},
        {"schedule_type": "FIX_RATE", "schedule_conf": "-5"},
        {"schedule_type": "FIX_RATE", "schedule_conf": "0"},
        {"schedule_type": "FIX_RATE", "schedule_conf": "999999999"},
        {"schedule_type": "FIX_RATE", "schedule_conf": "1.5"},
        {"schedule_type": "FIX_RATE", "schedule_conf": None},
        {"schedule_type": "FIX_DELAY", "schedule_conf": "-1"},
        {"schedule_type": "FIX_DELAY", "schedule_conf": "0"},
        {"schedule_type": "ONCE", "schedule_conf": "tomorrow"},
        {"schedule_type": "ONCE", "schedule_conf": None},
        {"time_zone": "../../etc/passwd"},
        {"trigger_next_time": -(2**60)},
        {"schedule_type": "FIX_RATE", "schedule_conf": "60", "anchor_ms": 2**62},
        {"schedule_type": "FIX_RATE", "schedule_conf": "99999999999999999999"},
    ],
)
async def test_a_corrupt_row_stops_alone_and_says_so(store: Store, columns: dict[str, object]) -> None:
    bad = await store.job(**{"trigger_last_time": 5, **columns})
    good = await store.job()
    assert len(await Claims(store).planned()) == 6
    row = await store.job_row(bad)
    assert (row["trigger_status"], row["trigger_next_time"], row["trigger_last_time"]) == (0, 0, 5)
    assert await events_of(store, bad) == ["job.corrupt"]
    details = (await store.database.read(list_job_events, bad, None, 1))[0].details
    assert details["reason"]
    # People must be able to look at it, and to set it right.
    assert [each.id for each in await store.database.read(list_jobs, store.zone, JobFilter(), 0, 10)] == [bad, good]
    assert (await store.job_row(good))["trigger_status"] == 1


async def test_columns_without_a_value_are_no_corruption(store: Store) -> None:
    empty = {column.name for column in job_info.c if column.nullable} - {"schedule_conf"}
    job_id = await store.job(**dict.fromkeys(empty))
    assert len(await Claims(store).planned()) == 6
    assert await events_of(store, job_id) == []
    sent = (await store.database.read(runs.load_dispatch_jobs, store.zone, [job_id]))[job_id]
    assert (sent.handler, sent.route_strategy, sent.damage) == ("", "FIRST", None)
    assert [each.id for each in await store.database.read(list_jobs, store.zone, JobFilter(), 0, 10)] == [job_id]


async def test_many_are_on_time_beside_corrupt_ones(store: Store) -> None:
    broken: list[dict[str, object]] = [
        {"schedule_type": "NONSENSE"},
        {"schedule_type": "FIX_RATE", "schedule_conf": "-60"},
        {"schedule_conf": "not a cron"},
        {"time_zone": "Atlantis"},
        {"misfire_strategy": "PERHAPS"},
        {"executor_route_strategy": "SOMEWHERE"},
    ]
    # Corrupt ones in the way of the others, whichever is looked at first.
    bad = [await store.job(**columns) for columns in broken]
    row = {**JOB_COLUMNS, "schedule_type": "FIX_RATE", "schedule_conf": "3600", "anchor_ms": SECOND_MS}
    await store.database.write(lambda c: c.execute(insert(job_info), [row] * 2000))
    bad += [await store.job(**columns) for columns in broken]
    made = Claims(store)
    assert await made.planned() == [SECOND_MS] * 2000
    assert len({run.job_id for run in made.flown}) == 2000
    for job_id in bad:
        assert await events_of(store, job_id) == ["job.corrupt"]
        assert (await store.job_row(job_id))["trigger_status"] == 0


async def test_full_batches_of_corrupt_rows_come_to_an_end(store: Store) -> None:
    bad = [await store.job(schedule_conf="not a cron") for _ in range(5)]
    await store.job()
    assert len(await Claims(store, 2).planned()) == 6
    assert [await events_of(store, job_id) for job_id in bad] == [["job.corrupt"]] * 5


async def test_setting_the_clock_back_plans_nothing_again(store: Store) -> None:
    clock = store.clock
    assert isinstance(clock, FakeClock)
    job_id = await store.job()
    made = Claims(store)
    first = await made.planned()
    clock.step(-3600)
    assert await made.planned() == []
    clock.step(3600 + 1)
    assert await made.planned() == [first[-1] + 1000]
    assert await events_of(store, job_id) == []


async def test_a_claim_that_fails_leaves_everything_as_it_was(store: Store) -> None:
    job_id = await store.job()
    await store.database.write(lambda c: c.exec_driver_sql("ALTER TABLE xxl_job_log RENAME TO away"))
    made = Claims(store)
    with pytest.raises(Exception, match=r"no such table|does not exist|doesn't exist"):
        await made.claimer.run_once()
    assert made.flown == []
    await store.database.write(lambda c: c.exec_driver_sql("ALTER TABLE away RENAME TO xxl_job_log"))
    assert (await store.job_row(job_id))["trigger_next_time"] == SECOND_MS
    assert len(await made.planned()) == 6
