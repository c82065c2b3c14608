"""What starting, stopping, editing and deleting do to a job's times and pending runs."""

from typing import Any

import pytest

from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import TriggerType
from tests.support.admin_harness import NOW_MS, AdminHarness
from tests.support.admin_jobs import (
    Json,
    add_run,
    answer,
    change_run,
    error,
    event_kinds,
    finish_job,
    make_group,
    make_job,
    patch_job,
    pending_planned,
    plan,
    read_events,
    read_job,
    stored_next_ms,
)

# The first instants of `0/5 * * * * ?` after NOW_MS, which is 02:30:00.250 UTC.
FIRST, SECOND, THIRD = (NOW_MS - 250 + 5_000 * k for k in (1, 2, 3))
RATE_60: Json = {"schedule_type": "FIX_RATE", "schedule_conf": "60"}
DELAY_10: Json = {"schedule_type": "FIX_DELAY", "schedule_conf": "10"}


async def start(admin: AdminHarness, job_id: int) -> dict[str, object]:
    return answer(await admin.client.post(f"/api/v1/jobs/{job_id}/start"))


async def stop(admin: AdminHarness, job_id: int) -> dict[str, object]:
    return answer(await admin.client.post(f"/api/v1/jobs/{job_id}/stop"))


class TestStart:
    async def test_a_new_job_is_stopped_and_has_no_next_time(self, admin: AdminHarness) -> None:
        job = await make_job(admin)
        assert (job["status"], job["next_planned_at"], job["last_planned_at"]) == ("stopped", None, None)
        assert admin.scheduler.wakes == 0

    async def test_start_plans_strictly_after_now_and_wakes_the_scheduler(self, admin: AdminHarness) -> None:
        job = await start(admin, (await make_job(admin))["id"])
        assert (job["status"], job["next_planned_at"]) == ("running", "2026-11-27T02:30:05.000Z")
        assert admin.scheduler.wakes == 1

    async def test_an_instant_that_is_now_is_not_planned(self, admin: AdminHarness) -> None:
        admin.clock.step(4.750)
        job = await start(admin, (await make_job(admin))["id"])
        assert job["next_planned_at"] == "2026-11-27T02:30:10.000Z"

    async def test_a_job_can_be_made_running(self, admin: AdminHarness) -> None:
        job = await make_job(admin, running=True)
        assert (job["status"], job["next_planned_at"]) == ("running", "2026-11-27T02:30:05.000Z")
        assert admin.scheduler.wakes == 1

    async def test_starting_a_running_job_changes_nothing(self, admin: AdminHarness) -> None:
        job = await make_job(admin, running=True)
        admin.clock.step(60)
        assert await start(admin, job["id"]) == job
        assert await event_kinds(admin, job["id"]) == ["job.created"]

    @pytest.mark.parametrize(
        ("schedule_type", "conf", "field"),
        [
            ("NONE", "", "schedule_type"),
            ("ONCE", "2026-11-27T02:30:00Z", "schedule_conf"),
            ("CRON", "0 0 0 1 1 ? 2020", "schedule_conf"),
        ],
    )
    async def test_what_never_fires_cannot_be_started(
        self, admin: AdminHarness, schedule_type: str, conf: str, field: str
    ) -> None:
        job = await make_job(admin, schedule_type=schedule_type, schedule_conf=conf)
        refused = error(await admin.client.post(f"/api/v1/jobs/{job['id']}/start"), 409)
        assert (refused["code"], refused["field"]) == ("never_fires", field)
        assert await read_job(admin, job["id"]) == job

    async def test_what_never_fires_cannot_be_made_running(self, admin: AdminHarness) -> None:
        group_id = await make_group(admin)
        body = {"group_id": group_id, "name": "n", "handler": "h", "schedule_type": "NONE", "running": True}
        assert error(await admin.client.post("/api/v1/jobs", json=body), 409)["code"] == "never_fires"
        assert answer(await admin.client.get("/api/v1/jobs"))["items"] == []

    async def test_a_once_job_three_seconds_ahead_starts(self, admin: AdminHarness) -> None:
        job = await make_job(admin, schedule_type="ONCE", schedule_conf="2026-11-27T10:30:03", running=True)
        assert job["next_planned_at"] == "2026-11-27T02:30:03.000Z"

    async def test_a_once_job_whose_run_is_planned_already_is_not_planned_twice(self, admin: AdminHarness) -> None:
        job = await make_job(admin, schedule_type="ONCE", schedule_conf="2026-11-27T10:30:03", running=True)
        await plan(admin, job["id"], NOW_MS + 2_750)
        await finish_job(admin, job["id"])
        assert error(await admin.client.post(f"/api/v1/jobs/{job['id']}/start"), 409)["code"] == "never_fires"


class TestFixRate:
    async def test_the_anchor_is_the_first_start_cut_to_whole_seconds(self, admin: AdminHarness) -> None:
        made = await make_job(admin, **RATE_60)
        assert made["anchor_at"] is None
        job = await start(admin, made["id"])
        assert (job["anchor_at"], job["next_planned_at"]) == ("2026-11-27T02:30:00.000Z", "2026-11-27T02:31:00.000Z")

    async def test_the_phase_is_kept_over_stop_start_and_other_edits(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, **RATE_60, running=True))["id"]
        admin.clock.step(90)
        await stop(admin, job_id)
        await patch_job(admin, job_id, name="renamed", parameter="x")
        job = await start(admin, job_id)
        assert (job["anchor_at"], job["next_planned_at"]) == ("2026-11-27T02:30:00.000Z", "2026-11-27T02:32:00.000Z")

    async def test_a_new_interval_has_a_new_anchor(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, **RATE_60, running=True))["id"]
        admin.clock.step(90)
        job = await patch_job(admin, job_id, schedule_conf="120")
        assert (job["anchor_at"], job["next_planned_at"]) == ("2026-11-27T02:31:30.000Z", "2026-11-27T02:33:30.000Z")

    async def test_a_new_interval_of_a_stopped_job_has_a_new_anchor_too(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, **RATE_60, running=True))["id"]
        await stop(admin, job_id)
        admin.clock.step(90)
        assert (await patch_job(admin, job_id, schedule_conf="120"))["anchor_at"] == "2026-11-27T02:31:30.000Z"

    async def test_an_interval_changed_before_the_first_start_leaves_the_anchor_to_the_start(
        self, admin: AdminHarness
    ) -> None:
        job_id = (await make_job(admin, **RATE_60))["id"]
        assert (await patch_job(admin, job_id, schedule_conf="120"))["anchor_at"] is None

    async def test_a_given_anchor_stands(self, admin: AdminHarness) -> None:
        job = await make_job(admin, **RATE_60, anchor_at="2026-11-27T00:00:10.500Z", running=True)
        assert (job["anchor_at"], job["next_planned_at"]) == ("2026-11-27T00:00:10.500Z", "2026-11-27T02:30:10.500Z")

    async def test_an_anchor_given_with_a_new_interval_stands(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, **RATE_60, running=True))["id"]
        job = await patch_job(admin, job_id, schedule_conf="120", anchor_at="2026-11-27T02:29:00Z")
        assert (job["anchor_at"], job["next_planned_at"]) == ("2026-11-27T02:29:00.000Z", "2026-11-27T02:31:00.000Z")

    async def test_thirty_days_are_thirty_days(self, admin: AdminHarness) -> None:
        job = await make_job(admin, schedule_type="FIX_RATE", schedule_conf="2592000", running=True)
        assert job["next_planned_at"] == "2026-12-27T02:30:00.000Z"

    async def test_another_type_forgets_the_anchor(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, **RATE_60, running=True))["id"]
        job = await patch_job(admin, job_id, schedule_type="CRON", schedule_conf="0 0 * * * ?")
        assert (job["anchor_at"], job["next_planned_at"]) == (None, "2026-11-27T03:00:00.000Z")


class TestFixDelay:
    async def test_the_first_run_comes_one_interval_after_the_start(self, admin: AdminHarness) -> None:
        assert (await make_job(admin, **DELAY_10, running=True))["next_planned_at"] == "2026-11-27T02:30:10.250Z"

    async def test_while_a_run_is_open_a_start_waits_for_its_end(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, **DELAY_10))["id"]
        await change_run(admin, await add_run(admin, job_id, TriggerType.MANUAL), phase="accepted")
        assert (await start(admin, job_id))["next_planned_at"] is None
        assert await stored_next_ms(admin, job_id) == AWAITING_SETTLEMENT_MS

    async def test_an_edit_of_the_parameter_keeps_the_removed_time(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, **DELAY_10, running=True))["id"]
        admin.clock.step(7)
        await plan(admin, job_id, NOW_MS + 10_000, next_ms=AWAITING_SETTLEMENT_MS)
        await patch_job(admin, job_id, parameter="new")
        assert await stored_next_ms(admin, job_id) == NOW_MS + 10_000
        assert await pending_planned(admin, job_id) == []

    async def test_a_new_interval_counts_from_the_edit(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, **DELAY_10, running=True))["id"]
        admin.clock.step(7)
        await plan(admin, job_id, NOW_MS + 10_000, next_ms=AWAITING_SETTLEMENT_MS)
        await patch_job(admin, job_id, schedule_conf="30")
        assert await stored_next_ms(admin, job_id) == NOW_MS + 7_000 + 30_000

    async def test_an_edit_while_a_run_is_open_goes_on_waiting(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, **DELAY_10, running=True))["id"]
        run_id = (await plan(admin, job_id, NOW_MS, next_ms=AWAITING_SETTLEMENT_MS))[0]
        await change_run(admin, run_id, phase="accepted")
        await patch_job(admin, job_id, schedule_conf="30")
        assert await stored_next_ms(admin, job_id) == AWAITING_SETTLEMENT_MS

    async def test_an_edit_of_the_parameter_waits_for_another_run_that_is_open(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, **DELAY_10, running=True))["id"]
        await plan(admin, job_id, NOW_MS + 10_000, next_ms=AWAITING_SETTLEMENT_MS)
        await change_run(admin, await add_run(admin, job_id, TriggerType.MANUAL), phase="accepted")
        await patch_job(admin, job_id, parameter="new")
        assert await stored_next_ms(admin, job_id) == AWAITING_SETTLEMENT_MS
        assert await pending_planned(admin, job_id) == []

    async def test_a_run_by_hand_holds_the_next_one_back(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, **DELAY_10, running=True))["id"]
        answer(await admin.client.post(f"/api/v1/jobs/{job_id}/run"), 201)
        assert await stored_next_ms(admin, job_id) == AWAITING_SETTLEMENT_MS

    async def test_a_run_by_hand_of_a_stopped_job_starts_nothing(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, **DELAY_10))["id"]
        answer(await admin.client.post(f"/api/v1/jobs/{job_id}/run"), 201)
        assert await stored_next_ms(admin, job_id) == 0


class TestStop:
    async def test_stop_takes_back_what_is_planned_after_now_and_nothing_else(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, running=True))["id"]
        await plan(admin, job_id, NOW_MS - 250, FIRST, SECOND, next_ms=THIRD)
        by_hand = await add_run(admin, job_id, TriggerType.MANUAL)
        await change_run(admin, by_hand, planned_ms=SECOND, due_ms=SECOND)
        stopped = await stop(admin, job_id)
        assert (stopped["status"], stopped["next_planned_at"]) == ("stopped", None)
        assert stopped["last_planned_at"] == "2026-11-27T02:30:00.000Z"
        assert await pending_planned(admin, job_id) == [NOW_MS - 250, SECOND]

    async def test_the_event_names_the_runs_that_were_taken_back(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, running=True))["id"]
        run_ids = await plan(admin, job_id, FIRST, SECOND, next_ms=THIRD)
        await stop(admin, job_id)
        stopped, removed = (await read_events(admin, job_id))[-2:]
        assert (stopped["kind"], stopped["actor"]) == ("job.stopped", "admin")
        assert removed["kind"] == "run.removed"
        assert removed["details"] == {
            "cause": "stop",
            "count": 2,
            "runs": [
                {"id": run_ids[0], "planned_at": "2026-11-27T02:30:05.000Z"},
                {"id": run_ids[1], "planned_at": "2026-11-27T02:30:10.000Z"},
            ],
        }

    async def test_runs_under_way_go_on(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, running=True))["id"]
        run_ids = await plan(admin, job_id, FIRST, next_ms=SECOND)
        await change_run(admin, run_ids[0], phase="sending")
        await stop(admin, job_id)
        assert answer(await admin.client.get(f"/api/v1/runs/{run_ids[0]}"))["phase"] == "sending"

    async def test_stop_and_start_plan_what_was_taken_back_again(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, running=True))["id"]
        await plan(admin, job_id, FIRST, next_ms=SECOND)
        await stop(admin, job_id)
        assert (await start(admin, job_id))["next_planned_at"] == "2026-11-27T02:30:05.000Z"

    async def test_what_was_sent_early_is_not_planned_again(self, admin: AdminHarness) -> None:
        # A clock that was set back: 02:30:05 has a run, though it is not 02:30:05 yet.
        job_id = (await make_job(admin, running=True))["id"]
        run_ids = await plan(admin, job_id, FIRST, next_ms=SECOND)
        await change_run(admin, run_ids[0], phase="accepted")
        await stop(admin, job_id)
        assert (await start(admin, job_id))["next_planned_at"] == "2026-11-27T02:30:10.000Z"

    async def test_a_job_that_stopped_itself_can_be_stopped_before_its_last_run(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, schedule_type="ONCE", schedule_conf="2026-11-27T10:30:05", running=True))["id"]
        await plan(admin, job_id, FIRST)
        await finish_job(admin, job_id)
        await stop(admin, job_id)
        assert await pending_planned(admin, job_id) == []

    async def test_stopping_a_stopped_job_changes_nothing(self, admin: AdminHarness) -> None:
        job = await make_job(admin)
        assert await stop(admin, job["id"]) == job
        assert await event_kinds(admin, job["id"]) == ["job.created"]

    async def test_instants_that_had_come_and_were_not_claimed_leave_an_event(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, running=True))["id"]
        admin.clock.step(12)
        await stop(admin, job_id)
        missed = (await read_events(admin, job_id))[-1]
        assert missed["kind"] == "job.misfired"
        assert missed["details"] == {
            "count": 2,
            "more": False,
            "from": "2026-11-27T02:30:05.000Z",
            "until": "2026-11-27T02:30:10.000Z",
            "done": "dropped by stop",
        }

    async def test_very_many_of_them_are_counted_to_ten_thousand(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, schedule_conf="* * * * * ?", running=True))["id"]
        admin.clock.step(11_000)
        await stop(admin, job_id)
        details = (await read_events(admin, job_id))[-1]["details"]
        assert (details["count"], details["more"], details["until"]) == (10_000, True, "2026-11-27T05:33:20.000Z")


class TestEdit:
    async def test_a_new_schedule_replaces_what_is_planned(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, running=True))["id"]
        await plan(admin, job_id, FIRST, SECOND, next_ms=THIRD)
        wakes = admin.scheduler.wakes
        job = await patch_job(admin, job_id, schedule_conf="0/7 * * * * ?")
        assert job["next_planned_at"] == "2026-11-27T02:30:07.000Z"
        assert await pending_planned(admin, job_id) == []
        assert admin.scheduler.wakes == wakes + 1
        updated, removed = (await read_events(admin, job_id))[-2:]
        assert updated["details"] == {
            "before": {"schedule_conf": "0/5 * * * * ?"},
            "after": {"schedule_conf": "0/7 * * * * ?"},
        }
        assert (removed["kind"], removed["details"]["count"]) == ("run.removed", 2)

    @pytest.mark.parametrize(
        "change",
        [{"name": "other"}, {"handler": "other"}, {"route_strategy": "LAST"}, {"misfire_strategy": "FIRE_ONCE_NOW"}],
    )
    async def test_other_edits_leave_the_plan_alone(self, admin: AdminHarness, change: dict[str, object]) -> None:
        job_id = (await make_job(admin, running=True))["id"]
        await plan(admin, job_id, FIRST, SECOND, next_ms=THIRD)
        job = await patch_job(admin, job_id, **change)
        assert job["next_planned_at"] == "2026-11-27T02:30:15.000Z"
        assert await pending_planned(admin, job_id) == [FIRST, SECOND]

    async def test_a_new_parameter_plans_the_same_instants_anew(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, running=True))["id"]
        await plan(admin, job_id, NOW_MS - 250, FIRST, SECOND, next_ms=THIRD)
        job = await patch_job(admin, job_id, parameter="new")
        assert job["next_planned_at"] == "2026-11-27T02:30:05.000Z"
        assert await pending_planned(admin, job_id) == [NOW_MS - 250]

    async def test_a_new_parameter_keeps_an_overdue_instant_due(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, running=True))["id"]
        admin.clock.step(5.5)
        job = await patch_job(admin, job_id, parameter="new")
        assert job["next_planned_at"] == "2026-11-27T02:30:05.000Z"
        assert "job.misfired" not in await event_kinds(admin, job_id)

    async def test_a_new_schedule_says_which_overdue_instants_it_drops(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, running=True))["id"]
        admin.clock.step(5.5)
        await patch_job(admin, job_id, schedule_conf="0/7 * * * * ?")
        missed = (await read_events(admin, job_id))[-1]
        assert (missed["kind"], missed["details"]["count"]) == ("job.misfired", 1)
        assert missed["details"]["done"] == "dropped by edit"

    async def test_a_new_zone_plans_anew(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, schedule_conf="0 0 12 * * ?", running=True))["id"]
        assert (await read_job(admin, job_id))["next_planned_at"] == "2026-11-27T04:00:00.000Z"
        job = await patch_job(admin, job_id, time_zone="Europe/Berlin")
        assert job["next_planned_at"] == "2026-11-27T11:00:00.000Z"
        job = await patch_job(admin, job_id, time_zone=None)
        assert job["next_planned_at"] == "2026-11-27T04:00:00.000Z"

    async def test_an_edit_of_a_stopped_job_does_not_start_it(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin))["id"]
        job = await patch_job(admin, job_id, schedule_conf="0/7 * * * * ?", parameter="x")
        assert (job["status"], job["next_planned_at"]) == ("stopped", None)

    async def test_a_job_that_stopped_itself_runs_again_if_its_last_instant_is_still_to_come(
        self, admin: AdminHarness
    ) -> None:
        job_id = (await make_job(admin, schedule_type="ONCE", schedule_conf="2026-11-27T10:30:05", running=True))["id"]
        await plan(admin, job_id, FIRST)
        await finish_job(admin, job_id)
        job = await patch_job(admin, job_id, parameter="new")
        assert (job["status"], job["next_planned_at"]) == ("running", "2026-11-27T02:30:05.000Z")
        assert await pending_planned(admin, job_id) == []

    async def test_a_running_job_cannot_be_given_a_schedule_that_never_fires(self, admin: AdminHarness) -> None:
        job = await make_job(admin, running=True)
        await plan(admin, job["id"], FIRST, next_ms=SECOND)
        before = await read_job(admin, job["id"])
        reply = await admin.client.patch(f"/api/v1/jobs/{job['id']}", json={"schedule_type": "NONE"})
        assert error(reply, 409)["code"] == "never_fires"
        assert await read_job(admin, job["id"]) == before
        assert await pending_planned(admin, job["id"]) == [FIRST]

    async def test_an_edit_that_changes_nothing_is_no_change(self, admin: AdminHarness) -> None:
        job = await make_job(admin, running=True)
        await plan(admin, job["id"], FIRST, next_ms=SECOND)
        again = await patch_job(admin, job["id"], name=job["name"], schedule_conf=job["schedule_conf"])
        assert again["version"] == job["version"]
        assert await pending_planned(admin, job["id"]) == [FIRST]
        assert await event_kinds(admin, job["id"]) == ["job.created"]


class TestDelete:
    async def test_delete_takes_all_pending_runs_and_keeps_the_events(self, admin: AdminHarness) -> None:
        job_id = (await make_job(admin, running=True))["id"]
        await plan(admin, job_id, NOW_MS - 5_000, FIRST, next_ms=SECOND)
        await add_run(admin, job_id, TriggerType.MANUAL)
        assert (await admin.client.delete(f"/api/v1/jobs/{job_id}")).status_code == 204
        error(await admin.client.get(f"/api/v1/jobs/{job_id}"), 404)
        assert await pending_planned(admin, job_id) == []
        kinds = await event_kinds(admin, job_id)
        assert kinds[-2:] == ["job.deleted", "run.removed"]
        assert (await read_events(admin, job_id))[-1]["details"]["count"] == 3


async def test_a_job_beyond_the_last_year_keeps_nobody_from_the_list(admin: AdminHarness) -> None:
    times: dict[str, Any] = {"schedule_type": "FIX_RATE", "schedule_conf": "60", "valid_from": "9999-12-31T23:59:30Z"}
    job = await make_job(admin, running=True, **times, anchor_at="9999-12-31T23:59:59.999Z")
    assert job["next_planned_at"] == "9999-12-31T23:59:59.999Z"
    assert [each["id"] for each in answer(await admin.client.get("/api/v1/jobs"))["items"]] == [job["id"]]
    for path in ("preview", "statistics", "events"):
        answer(await admin.client.get(f"/api/v1/jobs/{job['id']}/{path}"))
