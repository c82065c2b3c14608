"""Planning of jobs that have pause windows and a validity period."""

from jobwheel.admin.domain.job import DueJob, PauseWindow
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import TriggerType
from jobwheel.admin.engine.planner import Fire, Plan, PlanLimits, Schedules, plan
from tests.support.engine_parts import NOW_MS, SECOND_MS, due_job

HORIZON_MS = NOW_MS + 5000


def planned(job: DueJob, now_ms: int = NOW_MS) -> Plan:
    return plan(job, Schedules("Asia/Shanghai").of(job), now_ms, PlanLimits(now_ms + 5000, 1000))


def cron(*planned_ms: int) -> tuple[Fire, ...]:
    return tuple(Fire(each, TriggerType.CRON) for each in planned_ms)


def window(from_s: int, until_s: int) -> PauseWindow:
    """A window in seconds from `SECOND_MS`."""
    return PauseWindow(SECOND_MS + 1000 * from_s, SECOND_MS + 1000 * until_s)


def test_nothing_is_planned_in_a_window() -> None:
    made = planned(due_job(pause_windows=(window(2, 4),)))
    assert made.fires == cron(*(SECOND_MS + 1000 * each for each in (0, 1, 4, 5)))
    assert planned(due_job(pause_windows=(window(2, 9),))).next_ms == SECOND_MS + 9000


def test_what_lies_in_a_window_is_no_misfire() -> None:
    made = planned(due_job(next_ms=SECOND_MS - 20_000, pause_windows=(window(-18, -7), window(-5, -3))))
    misfire = made.misfire
    assert misfire is not None
    assert (misfire.count, misfire.first_ms, misfire.last_ms) == (4, SECOND_MS - 20_000, SECOND_MS - 6000)
    assert made.fires[0] == Fire(SECOND_MS - 3000, TriggerType.CRON)


def test_a_gap_that_a_window_covers_is_no_misfire_at_all() -> None:
    made = planned(due_job(next_ms=SECOND_MS - 20_000, pause_windows=(window(-20, 3),)))
    assert (made.misfire, made.fires) == (None, cron(*range(SECOND_MS + 3000, HORIZON_MS + 1, 1000)))


def test_the_end_of_the_validity_period_ends_the_job() -> None:
    made = planned(due_job(valid_until_ms=SECOND_MS + 2000))
    assert (made.fires, made.next_ms, made.last_ms) == (cron(SECOND_MS, SECOND_MS + 1000), None, SECOND_MS + 1000)


def test_a_stored_time_before_the_validity_period_moves_there() -> None:
    made = planned(due_job(valid_from_ms=SECOND_MS + 3_600_500))
    assert (made.fires, made.misfire, made.next_ms) == ((), None, SECOND_MS + 3_601_000)


def test_a_fix_delay_instant_in_a_window_moves_to_its_end() -> None:
    job = due_job(schedule_type="FIX_DELAY", schedule_conf="1", pause_windows=(window(-60, 3600),))
    made = planned(job)
    assert (made.fires, made.misfire, made.next_ms) == ((), None, SECOND_MS + 3_600_000)
    near = planned(due_job(schedule_type="FIX_DELAY", schedule_conf="1", pause_windows=(window(0, 3),)))
    assert (near.fires, near.next_ms) == (cron(SECOND_MS + 3000), AWAITING_SETTLEMENT_MS)


def test_a_fix_delay_instant_after_the_validity_period_ends_the_job() -> None:
    made = planned(due_job(schedule_type="FIX_DELAY", schedule_conf="1", valid_until_ms=SECOND_MS))
    assert (made.fires, made.misfire, made.next_ms) == ((), None, None)


def test_a_skipped_fix_delay_instant_comes_again_outside_windows() -> None:
    job = due_job(
        schedule_type="FIX_DELAY", schedule_conf="3", next_ms=SECOND_MS - 60_000, pause_windows=(window(1, 60),)
    )
    assert planned(job).next_ms == SECOND_MS + 60_000


def test_a_missed_once_before_a_window_is_still_one_instant() -> None:
    job = due_job(schedule_type="ONCE", schedule_conf="2026-11-27T02:30:00Z", pause_windows=(window(1, 60),))
    made = planned(job, now_ms=SECOND_MS + 5001)
    assert made.misfire is not None
    assert (made.misfire.count, made.next_ms) == (1, None)


def test_equal_schedules_with_other_windows_are_not_mixed_up() -> None:
    schedules = Schedules("UTC")
    paused = due_job(pause_windows=(window(0, 9),))
    limits = PlanLimits(HORIZON_MS, 1000)
    assert plan(paused, schedules.of(paused), NOW_MS, limits).fires == ()
    free = due_job()
    assert len(plan(free, schedules.of(free), NOW_MS, limits).fires) == 6
    assert plan(paused, schedules.of(paused), NOW_MS, limits).fires == ()
