"""The validity period and the pause windows of a job: kept, shown, and part of its plan."""

from sqlalchemy import insert, select

from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import TriggerType
from jobwheel.admin.store.tables import pause_window
from tests.support.admin_harness import NOW_MS, AdminHarness
from tests.support.admin_jobs import (
    Json,
    add_run,
    answer,
    change_run,
    error,
    event_kinds,
    make_job,
    patch_job,
    pending_planned,
    plan,
    read_events,
    read_job,
    stored_next_ms,
)

# The job runs each five seconds; now is 02:30:00.250.
FIRST, SECOND, THIRD = (NOW_MS - 250 + 5_000 * k for k in (1, 2, 3))
DELAY_10: Json = {"schedule_type": "FIX_DELAY", "schedule_conf": "10"}


def at(text: str) -> str:
    """`02:30:05` of the day as the API spells it."""
    return f"2026-11-27T{text}.000Z"


def window(from_: str, until: str, remark: str = "") -> Json:
    return {"from": at(from_), "until": at(until), "remark": remark}


async def windows_in_store(admin: AdminHarness) -> list[tuple[int, str | None]]:
    rows = await admin.database.read(lambda c: c.execute(select(pause_window).order_by(pause_window.c.id)).all())
    return [(row.job_id, row.remark) for row in rows]


async def test_windows_and_bounds_are_kept_in_order(admin: AdminHarness) -> None:
    windows = [window("05:00:00", "06:00:00"), window("03:00:00", "04:00:00", "Inventur — 盘点")]
    job = await make_job(
        admin, valid_from=at("01:00:00"), valid_until="2027-01-01T08:00:00+08:00", pause_windows=windows
    )
    assert (job["valid_from"], job["valid_until"]) == (at("01:00:00"), "2027-01-01T00:00:00.000Z")
    assert job["pause_windows"] == windows[::-1]
    assert await read_job(admin, job["id"]) == job
    assert answer(await admin.client.get("/api/v1/jobs"))["items"] == [job]


async def test_without_them_there_is_no_bound(admin: AdminHarness) -> None:
    job = await make_job(admin)
    assert (job["valid_from"], job["valid_until"], job["pause_windows"]) == (None, None, [])


async def test_jobs_have_their_own_windows(admin: AdminHarness) -> None:
    one = await make_job(admin, pause_windows=[window("03:00:00", "04:00:00", "one")])
    other = await make_job(admin, one["group_id"], pause_windows=[window("03:00:00", "05:00:00", "other")])
    bare = await make_job(admin, one["group_id"])
    listed = answer(await admin.client.get("/api/v1/jobs"))["items"]
    assert [[each["remark"] for each in job["pause_windows"]] for job in listed] == [["one"], ["other"], []]
    await patch_job(admin, one["id"], pause_windows=[])
    assert await windows_in_store(admin) == [(other["id"], "other")]
    assert (await read_job(admin, bare["id"]))["pause_windows"] == []


async def test_a_patch_of_something_else_leaves_them_alone(admin: AdminHarness) -> None:
    windows = [window("03:00:00", "04:00:00")]
    job = await make_job(admin, valid_until=at("12:00:00"), pause_windows=windows)
    changed = await patch_job(admin, job["id"], name="other")
    assert (changed["valid_until"], changed["pause_windows"]) == (at("12:00:00"), windows)
    changed = await patch_job(admin, job["id"], valid_until=None)
    assert (changed["valid_until"], changed["pause_windows"]) == (None, windows)


async def test_a_bound_that_does_not_fit_the_stored_one_is_refused(admin: AdminHarness) -> None:
    job = await make_job(admin, valid_until=at("12:00:00"))
    reply = await admin.client.patch(f"/api/v1/jobs/{job['id']}", json={"valid_from": at("12:00:00")})
    assert error(reply, 422)["field"] == "valid_until"
    assert await read_job(admin, job["id"]) == job


async def test_deleting_a_job_removes_its_windows(admin: AdminHarness) -> None:
    job = await make_job(admin, pause_windows=[window("03:00:00", "04:00:00")])
    kept = await make_job(admin, job["group_id"], pause_windows=[window("03:00:00", "04:00:00", "kept")])
    await admin.client.delete(f"/api/v1/jobs/{job['id']}")
    assert await windows_in_store(admin) == [(kept["id"], "kept")]


async def test_a_start_plans_after_the_window(admin: AdminHarness) -> None:
    job = await make_job(admin, running=True, pause_windows=[window("02:30:00", "02:30:10")])
    assert job["next_planned_at"] == at("02:30:10")


async def test_a_start_plans_within_the_validity_period(admin: AdminHarness) -> None:
    job = await make_job(admin, running=True, valid_from=at("03:00:00"), valid_until=at("04:00:00"))
    assert job["next_planned_at"] == at("03:00:00")


async def test_the_preview_leaves_out_what_will_not_be_planned(admin: AdminHarness) -> None:
    job = await make_job(admin, pause_windows=[window("02:30:10", "02:30:20")], valid_until=at("02:30:30"))
    times = answer(await admin.client.get(f"/api/v1/jobs/{job['id']}/preview"))["times"]
    assert times == [at("02:30:05"), at("02:30:20"), at("02:30:25")]


async def test_what_would_never_fire_again_cannot_be_started(admin: AdminHarness) -> None:
    once: Json = {"schedule_type": "ONCE", "schedule_conf": "2026-11-27T10:30:30"}
    for fields, field in (
        ({"valid_until": at("02:30:05")}, "valid_until"),
        ({"valid_until": at("01:00:00")}, "valid_until"),
        ({**once, "pause_windows": [window("02:30:30", "02:30:31")]}, "pause_windows"),
        ({**once, "valid_from": at("02:30:31")}, "valid_from"),
        ({**DELAY_10, "valid_until": at("02:30:05")}, "valid_until"),
        ({**once, "schedule_conf": "2026-11-27T10:00:00", "valid_until": at("02:30:05")}, "schedule_conf"),
    ):
        job = await _job(admin, fields)
        refused = error(await admin.client.post(f"/api/v1/jobs/{job['id']}/start"), 409)
        assert (refused["code"], refused["field"]) == ("never_fires", field)


async def _job(admin: AdminHarness, fields: Json) -> Json:
    groups = answer(await admin.client.get("/api/v1/groups"))["items"]
    return await make_job(admin, groups[0]["id"] if groups else None, **fields)


async def test_a_fix_delay_that_waits_for_a_run_cannot_be_started_after_its_end_either(admin: AdminHarness) -> None:
    job = await make_job(admin, **DELAY_10, valid_until=at("02:30:05"))
    await change_run(admin, await add_run(admin, job["id"], TriggerType.MANUAL), phase="accepted")
    refused = error(await admin.client.post(f"/api/v1/jobs/{job['id']}/start"), 409)
    assert (refused["code"], refused["field"]) == ("never_fires", "valid_until")


async def test_a_running_job_is_not_given_an_end_that_has_passed(admin: AdminHarness) -> None:
    job = await make_job(admin, running=True)
    reply = await admin.client.patch(f"/api/v1/jobs/{job['id']}", json={"valid_until": at("02:00:00")})
    refused = error(reply, 409)
    assert (refused["code"], refused["field"]) == ("never_fires", "valid_until")
    assert await read_job(admin, job["id"]) == job


async def test_a_new_window_takes_back_what_is_planned(admin: AdminHarness) -> None:
    job = await make_job(admin, running=True)
    await plan(admin, job["id"], NOW_MS - 250, FIRST, SECOND, next_ms=THIRD)
    windows = [window("02:30:10", "02:30:20", "deploy")]
    changed = await patch_job(admin, job["id"], pause_windows=windows)
    assert changed["next_planned_at"] == at("02:30:05")
    assert await pending_planned(admin, job["id"]) == [NOW_MS - 250]
    updated, removed = (await read_events(admin, job["id"]))[-2:]
    assert updated["details"] == {"before": {"pause_windows": []}, "after": {"pause_windows": windows}}
    assert (removed["kind"], removed["details"]["count"]) == ("run.removed", 2)


async def test_a_new_validity_period_takes_back_what_is_planned(admin: AdminHarness) -> None:
    job = await make_job(admin, running=True)
    await plan(admin, job["id"], FIRST, next_ms=SECOND)
    changed = await patch_job(admin, job["id"], valid_from=at("03:00:00"))
    assert changed["next_planned_at"] == at("03:00:00")
    assert await pending_planned(admin, job["id"]) == []
    updated = (await read_events(admin, job["id"]))[-2]
    assert updated["details"] == {"before": {"valid_from": None}, "after": {"valid_from": at("03:00:00")}}


async def test_another_remark_is_no_new_plan(admin: AdminHarness) -> None:
    job = await make_job(admin, running=True, pause_windows=[window("03:00:00", "04:00:00")])
    await plan(admin, job["id"], FIRST, next_ms=SECOND)
    changed = await patch_job(admin, job["id"], pause_windows=[window("03:00:00", "04:00:00", "moved")])
    assert changed["pause_windows"][0]["remark"] == "moved"
    assert await pending_planned(admin, job["id"]) == [FIRST]


async def test_windows_given_again_in_another_order_are_no_change(admin: AdminHarness) -> None:
    windows = [window("03:00:00", "04:00:00"), window("05:00:00", "06:00:00")]
    job = await make_job(admin, pause_windows=windows)
    assert await patch_job(admin, job["id"], pause_windows=windows[::-1]) == job


async def test_a_start_writes_no_windows_anew(admin: AdminHarness) -> None:
    job = await make_job(admin, pause_windows=[window("03:00:00", "04:00:00")])
    ids = select(pause_window.c.id)
    before = await admin.database.read(lambda c: c.execute(ids).scalars().all())
    answer(await admin.client.post(f"/api/v1/jobs/{job['id']}/start"))
    assert await admin.database.read(lambda c: c.execute(ids).scalars().all()) == before


async def test_what_lies_in_a_window_is_not_dropped_by_a_stop(admin: AdminHarness) -> None:
    job = await make_job(admin, running=True, pause_windows=[window("02:30:10", "02:30:30")])
    admin.clock.step(31)
    answer(await admin.client.post(f"/api/v1/jobs/{job['id']}/stop"))
    missed = (await read_events(admin, job["id"]))[-1]
    assert missed["kind"] == "job.misfired"
    assert (missed["details"]["count"], missed["details"]["until"]) == (2, at("02:30:30"))


async def test_a_fix_delay_time_in_a_window_is_shown_where_it_moves(admin: AdminHarness) -> None:
    job = await make_job(admin, **DELAY_10, running=True, pause_windows=[window("02:30:05", "02:40:00")])
    assert job["next_planned_at"] == at("02:40:00")
    # What the settlement of a run writes.
    await plan(admin, job["id"], next_ms=NOW_MS + 20_000)
    assert (await read_job(admin, job["id"]))["next_planned_at"] == at("02:40:00")
    admin.clock.step(25)
    answer(await admin.client.post(f"/api/v1/jobs/{job['id']}/stop"))
    assert "job.misfired" not in await event_kinds(admin, job["id"])


async def test_a_fix_delay_has_waited_for_a_while_when_windows_change(admin: AdminHarness) -> None:
    job_id = (await make_job(admin, **DELAY_10, running=True))["id"]
    admin.clock.step(7)
    await patch_job(admin, job_id, pause_windows=[window("03:00:00", "04:00:00")])
    assert await stored_next_ms(admin, job_id) == NOW_MS + 10_000
    await plan(admin, job_id, NOW_MS + 10_000, next_ms=AWAITING_SETTLEMENT_MS)
    await patch_job(admin, job_id, pause_windows=[window("02:30:00", "02:30:30")])
    assert await stored_next_ms(admin, job_id) == NOW_MS + 29_750
    # A window that is taken away holds nothing back any more.
    await patch_job(admin, job_id, pause_windows=[])
    assert await stored_next_ms(admin, job_id) == NOW_MS + 7_000 + 10_000


async def test_a_window_written_by_hand_without_a_remark_is_read(admin: AdminHarness) -> None:
    job = await make_job(admin)
    row = {"job_id": job["id"], "from_ms": NOW_MS - 250, "until_ms": NOW_MS + 4_750}
    await admin.database.write(lambda c: c.execute(insert(pause_window).values(row)))
    assert (await read_job(admin, job["id"]))["pause_windows"] == [window("02:30:00", "02:30:05")]
