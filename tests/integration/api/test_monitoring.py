"""Health and metrics."""

from jobwheel.admin.domain.group import ExecutorLoad
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.engine.figures import (
    EngineFigures,
    ExecutorFigures,
    HealthReason,
    LaneFigures,
    LatenessFigures,
)
from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import answer
from tests.support.metrics import samples


async def test_green(admin: AdminHarness) -> None:
    assert answer(await admin.guest.get("/health")) == {"status": "green", "reasons": []}
    head = await admin.guest.head("/health")
    assert (head.status_code, head.content) == (200, b"")


async def test_red_says_why(admin: AdminHarness) -> None:
    admin.status.said = [HealthReason("no_pass", "No scheduling pass has succeeded for 12 s.")]
    assert answer(await admin.guest.get("/health"), 503) == {
        "status": "red",
        "reasons": [{"code": "no_pass", "message": "No scheduling pass has succeeded for 12 s."}],
    }
    assert (await admin.guest.head("/health")).status_code == 503


async def test_health_needs_no_database(admin: AdminHarness) -> None:
    await admin.database.stop()
    reply = await admin.client.get("/health")
    assert reply.status_code == 200


async def test_the_engines_figures(admin: AdminHarness) -> None:
    admin.status.figures = EngineFigures(
        passes=7,
        failed_passes=2,
        last_pass_age_s=0.5,
        wheel_size=11,
        lanes=(LaneFigures("fast", 3, 200, 4), LaneFigures("slow", 0, 100, 0)),
        parked=5,
        left_in_database=6,
        sends_in_flight=3,
        runs_sent=99,
        clock_difference_s=-0.25,
        lateness=LatenessFigures((0.01, 0.1), (5, 2, 1), 1.5),
        outcomes={Outcome.SUCCEEDED: 6, Outcome.TIMED_OUT: 1},
        executors=(ExecutorFigures("orders", "http://10.0.0.7:9999/", ExecutorLoad(3, 14, 15, 1)),),
    )
    found = samples(await admin.client.get("/metrics"))
    expected = {
        "jobwheel_healthy": 1,
        "jobwheel_scheduling_passes_total": 7,
        "jobwheel_scheduling_pass_failures_total": 2,
        "jobwheel_scheduling_last_pass_age_seconds": 0.5,
        "jobwheel_clock_difference_seconds": -0.25,
        "jobwheel_wheel_runs": 11,
        "jobwheel_parked_runs": 5,
        "jobwheel_database_waiting_runs": 6,
        "jobwheel_sends_in_flight": 3,
        "jobwheel_runs_sent_total": 99,
        "jobwheel_lane_sends{lane=fast}": 3,
        "jobwheel_lane_limit{lane=slow}": 100,
        "jobwheel_lane_waiting_runs{lane=fast}": 4,
        "jobwheel_run_lateness_seconds_bucket{le=0.01}": 5,
        "jobwheel_run_lateness_seconds_bucket{le=0.1}": 7,
        "jobwheel_run_lateness_seconds_bucket{le=+Inf}": 8,
        "jobwheel_run_lateness_seconds_count": 8,
        "jobwheel_run_lateness_seconds_sum": 1.5,
        "jobwheel_executor_running_runs{address=http://10.0.0.7:9999/,app_name=orders}": 3,
        "jobwheel_executor_queued_runs{address=http://10.0.0.7:9999/,app_name=orders}": 14,
        "jobwheel_executor_unreported_results{address=http://10.0.0.7:9999/,app_name=orders}": 15,
        "jobwheel_executor_abandoned_threads{address=http://10.0.0.7:9999/,app_name=orders}": 1,
        "jobwheel_runs_ended_total{outcome=succeeded}": 6,
        "jobwheel_runs_ended_total{outcome=timed_out}": 1,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert found["process_resident_memory_bytes"] > 0


async def test_before_the_first_pass_its_age_is_not_made_up(admin: AdminHarness) -> None:
    assert "jobwheel_scheduling_last_pass_age_seconds" not in samples(await admin.client.get("/metrics"))


async def test_an_unhealthy_engine_shows_in_the_metrics(admin: AdminHarness) -> None:
    admin.status.said = [HealthReason("no_pass", "No scheduling pass has succeeded for 12 s.")]
    assert samples(await admin.client.get("/metrics"))["jobwheel_healthy"] == 0
