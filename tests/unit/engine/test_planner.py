import pytest

from jobwheel.admin.domain.job import DueJob
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS, MisfireStrategy
from jobwheel.admin.domain.run import TriggerType
from jobwheel.admin.engine.planner import MISFIRES_COUNTED, Fire, Plan, PlanLimits, Schedules, UnusableJobError, plan
from tests.support.engine_parts import NOW_MS, SECOND_MS, due_job

HORIZON_MS = NOW_MS + 5000
ZONE = "Asia/Shanghai"


def planned(
    job: DueJob, now_ms: int = NOW_MS, horizon_ms: int | None = None, most: int = 1000, most_made_up: int = 100
) -> Plan:
    limits = PlanLimits(now_ms + 5000 if horizon_ms is None else horizon_ms, most, most_made_up)
    return plan(job, Schedules(ZONE).of(job), now_ms, limits)


def cron(*planned_ms: int) -> tuple[Fire, ...]:
    return tuple(Fire(each, TriggerType.CRON) for each in planned_ms)


def test_every_instant_up_to_the_horizon_fires() -> None:
    made = planned(due_job())
    assert made.fires == cron(*range(SECOND_MS, HORIZON_MS + 1, 1000))
    assert (made.misfire, made.next_ms, made.last_ms) == (None, SECOND_MS + 6000, SECOND_MS + 5000)


def test_the_horizon_itself_is_planned() -> None:
    made = planned(due_job(next_ms=SECOND_MS + 1000), horizon_ms=SECOND_MS + 2000)
    assert made.fires == cron(SECOND_MS + 1000, SECOND_MS + 2000)


def test_a_batch_is_bounded_and_goes_on_where_it_ended() -> None:
    first = planned(due_job(), most=2)
    assert first.fires == cron(SECOND_MS, SECOND_MS + 1000)
    assert first.next_ms == SECOND_MS + 2000
    assert planned(due_job(next_ms=first.next_ms), most=2).fires == cron(SECOND_MS + 2000, SECOND_MS + 3000)


@pytest.mark.parametrize("strategy", ["DO_NOTHING", "FIRE_ONCE_NOW", "FIRE_ALL"])
def test_late_by_five_seconds_and_no_more_still_fires_each(strategy: str) -> None:
    made = planned(due_job(next_ms=SECOND_MS - 5000, misfire_strategy=strategy), now_ms=SECOND_MS)
    assert made.misfire is None
    assert made.fires[0] == Fire(SECOND_MS - 5000, TriggerType.CRON)
    assert len(made.fires) == 11


def test_missed_and_young_instants_are_told_apart_to_the_millisecond() -> None:
    made = planned(due_job(next_ms=SECOND_MS - 8000))
    # 8, 7, 6 and 5 seconds before the whole second are more than 5 s before now, which is 250 ms later.
    assert made.misfire is not None
    assert (made.misfire.count, made.misfire.more) == (4, False)
    assert (made.misfire.first_ms, made.misfire.last_ms) == (SECOND_MS - 8000, SECOND_MS - 5000)
    assert made.fires == cron(*range(SECOND_MS - 4000, HORIZON_MS + 1, 1000))


def test_fire_once_now_makes_one_run_for_the_last_missed_instant() -> None:
    made = planned(due_job(next_ms=SECOND_MS - 8000, misfire_strategy="FIRE_ONCE_NOW"))
    assert made.fires[:2] == (
        Fire(SECOND_MS - 5000, TriggerType.MISFIRE),
        Fire(SECOND_MS - 4000, TriggerType.CRON),
    )
    assert sum(fire.trigger_type is TriggerType.MISFIRE for fire in made.fires) == 1
    assert made.misfire is not None
    assert made.misfire.strategy is MisfireStrategy.FIRE_ONCE_NOW


def test_the_run_of_a_misfire_counts_against_the_bound() -> None:
    made = planned(due_job(next_ms=SECOND_MS - 8000, misfire_strategy="FIRE_ONCE_NOW"), most=1)
    assert made.fires == (Fire(SECOND_MS - 5000, TriggerType.MISFIRE),)
    assert made.next_ms == SECOND_MS - 4000


def test_fire_all_makes_every_missed_instant_up_oldest_first() -> None:
    made = planned(due_job(next_ms=SECOND_MS - 8000, misfire_strategy="FIRE_ALL"))
    missed = range(SECOND_MS - 8000, SECOND_MS - 4999, 1000)
    assert made.fires[:4] == tuple(Fire(each, TriggerType.MISFIRE) for each in missed)
    assert made.fires[4:] == cron(*range(SECOND_MS - 4000, HORIZON_MS + 1, 1000))
    assert made.misfire is not None
    assert (made.misfire.count, made.misfire.made_up) == (4, tuple(missed))


def test_fire_all_makes_the_newest_up_and_counts_them_all() -> None:
    made = planned(due_job(next_ms=SECOND_MS - 365 * 86_400_000, misfire_strategy="FIRE_ALL"), most_made_up=3)
    assert [fire.planned_ms for fire in made.fires[:4]] == [SECOND_MS - back for back in (7000, 6000, 5000, 4000)]
    assert [fire.trigger_type for fire in made.fires[:4]] == ["MISFIRE", "MISFIRE", "MISFIRE", "CRON"]
    misfire = made.misfire
    assert misfire is not None
    assert (misfire.count, misfire.more) == (MISFIRES_COUNTED, True)
    assert (misfire.first_ms, misfire.last_ms) == (SECOND_MS - 365 * 86_400_000, SECOND_MS - 5000)


def test_what_has_no_room_is_made_up_by_the_next_plan() -> None:
    job = due_job(next_ms=SECOND_MS - 20_000, misfire_strategy="FIRE_ALL")
    first = planned(job, most=2, most_made_up=5)
    assert [fire.planned_ms for fire in first.fires] == [SECOND_MS - 9000, SECOND_MS - 8000]
    assert first.misfire is not None
    # Each part tells what it handled: no instant is counted twice.
    assert (first.misfire.count, first.misfire.last_ms) == (13, SECOND_MS - 8000)
    assert (first.last_ms, first.next_ms) == (SECOND_MS - 8000, SECOND_MS - 7000)
    second = planned(due_job(next_ms=first.next_ms, misfire_strategy="FIRE_ALL"), most=5, most_made_up=5)
    assert [fire.planned_ms for fire in second.fires] == [SECOND_MS - back for back in (7000, 6000, 5000, 4000, 3000)]
    assert second.misfire is not None
    assert (second.misfire.count, second.misfire.first_ms) == (3, SECOND_MS - 7000)


def test_fire_all_makes_up_a_stored_time_that_the_schedule_would_not_name() -> None:
    odd_ms = SECOND_MS - 6877
    made = planned(due_job(next_ms=odd_ms, misfire_strategy="FIRE_ALL"))
    assert [fire.planned_ms for fire in made.fires[:3]] == [odd_ms, SECOND_MS - 6000, SECOND_MS - 5000]


def test_a_year_of_missed_seconds_is_counted_to_the_bound_and_skipped_at_once() -> None:
    made = planned(due_job(next_ms=SECOND_MS - 365 * 86_400_000))
    assert made.misfire is not None
    assert (made.misfire.count, made.misfire.more) == (MISFIRES_COUNTED, True)
    assert made.misfire.last_ms == SECOND_MS - 5000
    assert made.fires[0] == Fire(SECOND_MS - 4000, TriggerType.CRON)


def test_exactly_as_many_as_are_counted_is_not_more() -> None:
    first_ms = SECOND_MS - 5000 - (MISFIRES_COUNTED - 1) * 1000
    made = planned(due_job(next_ms=first_ms))
    assert made.misfire is not None
    assert (made.misfire.count, made.misfire.more) == (MISFIRES_COUNTED, False)
    one_more = planned(due_job(next_ms=first_ms - 1000)).misfire
    assert one_more is not None
    assert (one_more.count, one_more.more) == (MISFIRES_COUNTED, True)


def test_the_stored_time_counts_even_if_the_schedule_would_not_name_it() -> None:
    odd_ms = SECOND_MS + 123
    assert planned(due_job(next_ms=odd_ms)).fires[0] == Fire(odd_ms, TriggerType.CRON)
    misfire = planned(due_job(next_ms=SECOND_MS - 60_877, schedule_conf="0 0 3 * * ?")).misfire
    assert misfire is not None
    assert (misfire.count, misfire.first_ms, misfire.last_ms) == (1, SECOND_MS - 60_877, SECOND_MS - 60_877)


def test_a_cron_in_the_jobs_own_zone() -> None:
    # 10:30:01 in Shanghai, 02:30:01 in UTC, 08:15:01 in Kathmandu.
    for zone, conf in (("UTC", "1 30 2 * * ?"), ("Asia/Kathmandu", "1 15 8 * * ?"), (None, "1 30 10 * * ?")):
        job = due_job(time_zone=zone, schedule_conf=conf, next_ms=SECOND_MS - 86_400_000 + 1000)
        made = planned(job)
        assert made.fires == cron(SECOND_MS + 1000), zone


def test_fix_rate_keeps_its_phase_over_a_gap() -> None:
    job = due_job(
        schedule_type="FIX_RATE", schedule_conf="7", anchor_ms=SECOND_MS - 700_000, next_ms=SECOND_MS - 70_000
    )
    made = planned(job)
    assert made.misfire is not None
    assert (made.misfire.count, made.misfire.last_ms) == (10, SECOND_MS - 7000)
    assert made.fires == cron(SECOND_MS)
    assert made.next_ms == SECOND_MS + 7000


@pytest.mark.parametrize("strategy", ["DO_NOTHING", "FIRE_ONCE_NOW", "FIRE_ALL"])
def test_fix_delay_fires_once_and_waits_for_the_end(strategy: str) -> None:
    job = due_job(schedule_type="FIX_DELAY", schedule_conf="1", misfire_strategy=strategy)
    made = planned(job)
    assert made.fires == cron(SECOND_MS)
    assert made.next_ms == AWAITING_SETTLEMENT_MS


def test_a_missed_fix_delay_instant_is_skipped_for_an_interval_from_now() -> None:
    made = planned(due_job(schedule_type="FIX_DELAY", schedule_conf="3", next_ms=SECOND_MS - 60_000))
    assert made.fires == ()
    assert made.next_ms == NOW_MS + 3000
    assert made.misfire is not None
    assert (made.misfire.count, made.misfire.last_ms) == (1, SECOND_MS - 60_000)


@pytest.mark.parametrize("strategy", ["FIRE_ONCE_NOW", "FIRE_ALL"])
def test_a_missed_fix_delay_instant_may_fire_now_and_then_waits(strategy: str) -> None:
    job = due_job(schedule_type="FIX_DELAY", schedule_conf="3", next_ms=SECOND_MS - 60_000, misfire_strategy=strategy)
    made = planned(job)
    assert made.fires == (Fire(SECOND_MS - 60_000, TriggerType.MISFIRE),)
    assert made.next_ms == AWAITING_SETTLEMENT_MS


def once(**fields: object) -> DueJob:
    return due_job(schedule_type="ONCE", schedule_conf="2026-11-27T02:30:00Z", **fields)


def test_once_fires_and_has_no_further_time() -> None:
    made = planned(once())
    assert (made.fires, made.next_ms, made.last_ms, made.misfire) == (cron(SECOND_MS), None, SECOND_MS, None)


def test_a_missed_once_stops_with_its_event() -> None:
    made = planned(once(), now_ms=SECOND_MS + 5001)
    assert (made.fires, made.next_ms) == ((), None)
    assert made.misfire is not None
    assert made.misfire.count == 1


@pytest.mark.parametrize("strategy", ["FIRE_ONCE_NOW", "FIRE_ALL"])
def test_a_missed_once_may_fire_now(strategy: str) -> None:
    made = planned(once(misfire_strategy=strategy), now_ms=SECOND_MS + 5001)
    assert made.fires == (Fire(SECOND_MS, TriggerType.MISFIRE),)
    assert made.next_ms is None


def test_a_cron_with_its_last_instant_stops() -> None:
    made = planned(due_job(schedule_conf="2 30 10 27 11 ? 2026", next_ms=SECOND_MS + 2000))
    assert (made.fires, made.next_ms) == (cron(SECOND_MS + 2000), None)


@pytest.mark.parametrize(
    "fields",
    [
        {"schedule_conf": "not a cron"},
        {"schedule_conf": ""},
        {"schedule_type": "CRONTAB"},
        {"schedule_type": "FIX_RATE", "schedule_conf": "0"},
        {"schedule_type": "FIX_DELAY", "schedule_conf": "soon"},
        {"schedule_type": "ONCE", "schedule_conf": "tomorrow"},
        {"time_zone": "Atlantis/Poseidonis"},
        {"next_ms": SECOND_MS - 60_000, "misfire_strategy": "PERHAPS"},
        {"next_ms": -1},
        {"next_ms": -(10**18)},
        {"schedule_type": "FIX_RATE", "schedule_conf": "60", "anchor_ms": 2**62},
    ],
)
def test_a_row_that_cannot_be_read_is_unusable(fields: dict[str, object]) -> None:
    with pytest.raises(UnusableJobError):
        planned(due_job(**fields))


@pytest.mark.parametrize("fields", [{"misfire_strategy": "PERHAPS"}, {"route_strategy": "SOMEWHERE"}])
def test_a_policy_that_nobody_knows_is_unusable_though_nothing_was_missed(fields: dict[str, object]) -> None:
    with pytest.raises(UnusableJobError, match="is unknown"):
        planned(due_job(**fields))


def test_schedules_are_parsed_once_and_by_all_that_matters() -> None:
    schedules = Schedules(ZONE)
    assert schedules.of(due_job()) is schedules.of(due_job(next_ms=5, parameter="other"))
    assert schedules.of(due_job()) is not schedules.of(due_job(time_zone="UTC"))
    assert schedules.of(due_job()) is not schedules.of(due_job(schedule_conf="0/2 * * * * ?"))


def test_the_table_of_parsed_schedules_is_bounded() -> None:
    schedules = Schedules(ZONE, most=10)
    for second in range(50):
        schedules.of(due_job(schedule_conf=f"{second} * * * * ?"))
        assert len(schedules._parsed) <= 10
