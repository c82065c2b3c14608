"""The run log over REST, and the logs that executors have."""

from typing import Any

import pytest

from jobwheel.admin.domain.run import TriggerType
from jobwheel.admin.services.deleted_jobs import DeletedJobs
from jobwheel.wire.errors import UncertainError, UnreachableError
from jobwheel.wire.messages import LogPage, LogQuery
from tests.support.admin_harness import NOW_MS, AdminHarness
from tests.support.admin_jobs import add_run, answer, change_run, error, make_group, make_job, register

ADDRESS = "http://10.0.0.7:9999/"
ACCEPTED: dict[str, Any] = {"phase": "accepted", "accepted_ms": NOW_MS + 20, "executor_address": ADDRESS}
SUCCEEDED: dict[str, Any] = {
    **ACCEPTED,
    "phase": None,
    "outcome": "succeeded",
    "trigger_code": 200,
    "handle_code": 200,
    "ended_ms": NOW_MS + 1_500,
}


async def listed(admin: AdminHarness, **params: object) -> list[int]:
    query = "&".join(f"{name}={value}" for name, value in params.items())
    return [run["id"] for run in answer(await admin.client.get(f"/api/v1/runs?{query}"))["items"]]


async def test_a_finished_run_tells_everything(admin: AdminHarness) -> None:
    job = await make_job(admin)
    run_id = await add_run(admin, job["id"])
    await change_run(admin, run_id, **SUCCEEDED, sent_ms=NOW_MS + 3, handle_msg="done <b>", trigger_msg="sent")
    run = answer(await admin.client.get(f"/api/v1/runs/{run_id}"))
    expected = {
        "trigger_type": "CRON",
        "phase": None,
        "outcome": "succeeded",
        "sent_at": "2026-11-27T02:30:00.253Z",
        "accepted_at": "2026-11-27T02:30:00.270Z",
        "ended_at": "2026-11-27T02:30:01.750Z",
        "executor_address": ADDRESS,
        "trigger_message": "sent",
        "handle_code": 200,
        "handle_message": "done <b>",
    }
    assert {name: run[name] for name in expected} == expected


async def test_pages_go_from_the_newest_backwards(admin: AdminHarness) -> None:
    job = await make_job(admin)
    made = [await add_run(admin, job["id"]) for _ in range(5)]
    first = answer(await admin.client.get("/api/v1/runs?limit=3"))
    newer = await add_run(admin, job["id"])
    second = answer(await admin.client.get(f"/api/v1/runs?limit=3&after={first['next']}"))
    assert [run["id"] for run in first["items"] + second["items"]] == made[::-1]
    assert second["next"] is None
    assert await listed(admin, limit=1) == [newer]


async def test_filters(admin: AdminHarness) -> None:
    first = await make_job(admin)
    second = await make_job(admin, await make_group(admin, "bills"))
    pending = await add_run(admin, first["id"])
    good = await add_run(admin, first["id"], TriggerType.MANUAL)
    await change_run(admin, good, **SUCCEEDED, planned_ms=NOW_MS + 60_000)
    failed = await add_run(admin, second["id"], TriggerType.MISFIRE)
    await change_run(admin, failed, phase=None, outcome="failed", planned_ms=NOW_MS - 60_000)
    assert await listed(admin) == [failed, good, pending]
    assert await listed(admin, group_id=second["group_id"]) == [failed]
    assert await listed(admin, job_id=first["id"]) == [good, pending]
    assert await listed(admin, phase="pending") == [pending]
    assert await listed(admin, outcome="failed") == [failed]
    assert await listed(admin, trigger_type="MANUAL") == [good]
    assert await listed(admin, executor_address=ADDRESS) == [good]
    assert await listed(admin, planned_from="2026-11-27T02:30:00.250Z") == [good, pending]
    assert await listed(admin, planned_until="2026-11-27T02:30:00.250Z") == [failed]
    assert await listed(admin, planned_from="2026-11-27T10:31:00+08:00") == [good]
    assert await listed(admin, job_id=first["id"], outcome="failed") == []


async def test_an_unknown_run_is_not_found(admin: AdminHarness) -> None:
    for path in ("/api/v1/runs/4711", "/api/v1/runs/4711/log"):
        assert error(await admin.client.get(path), 404)["message"] == "there is no run 4711"


class TestLog:
    async def make_run(self, admin: AdminHarness, **columns: object) -> int:
        await register(admin, "orders", ADDRESS)
        run_id = await add_run(admin, (await make_job(admin))["id"])
        await change_run(admin, run_id, **columns)
        return run_id

    async def read(self, admin: AdminHarness, run_id: int, from_line: int = 1) -> dict[str, Any]:
        return answer(await admin.client.get(f"/api/v1/runs/{run_id}/log?from_line={from_line}"))

    async def test_it_comes_from_the_executor_that_has_the_run(self, admin: AdminHarness) -> None:
        run_id = await self.make_run(admin, **ACCEPTED)
        admin.log_source.page = LogPage(3, 4, "three\nfour\n", is_end=False)
        page = await self.read(admin, run_id, 3)
        assert page == {"from_line": 3, "to_line": 4, "content": "three\nfour\n", "is_end": False}
        assert admin.log_source.asked == [(ADDRESS, LogQuery(run_id, NOW_MS - 250, 3))]

    @pytest.mark.parametrize(
        ("columns", "to_line", "says_end", "is_end"),
        [
            (ACCEPTED, 0, False, False),
            (ACCEPTED, 0, True, False),
            (ACCEPTED, 2, True, False),
            (SUCCEEDED, 2, False, False),
            (SUCCEEDED, 0, False, True),
            (SUCCEEDED, 2, True, True),
        ],
    )
    async def test_it_ends_once_the_run_has_an_outcome_and_nothing_is_new(
        self, admin: AdminHarness, columns: dict[str, Any], to_line: int, says_end: bool, is_end: bool
    ) -> None:
        run_id = await self.make_run(admin, **columns)
        admin.log_source.page = LogPage(1, to_line, "", is_end=says_end)
        assert (await self.read(admin, run_id))["is_end"] is is_end

    async def test_an_address_written_differently_is_the_same(self, admin: AdminHarness) -> None:
        run_id = await self.make_run(admin, **{**ACCEPTED, "executor_address": ADDRESS.rstrip("/")})
        await self.read(admin, run_id)
        assert admin.log_source.asked[0][0] == ADDRESS

    @pytest.mark.parametrize("kind", [UnreachableError, UncertainError])
    async def test_an_executor_that_is_gone(
        self, admin: AdminHarness, kind: type[UnreachableError | UncertainError]
    ) -> None:
        run_id = await self.make_run(admin, **SUCCEEDED)
        admin.log_source.page = kind(ADDRESS, "connection refused")
        refused = error(await admin.client.get(f"/api/v1/runs/{run_id}/log"), 502)
        assert refused["code"] == "executor_unreachable"
        assert ADDRESS in refused["message"]
        assert "connection refused" in refused["message"]

    async def test_the_token_is_sent_to_no_address_that_left_the_group(self, admin: AdminHarness) -> None:
        run_id = await self.make_run(admin, **{**SUCCEEDED, "executor_address": "http://203.0.113.9:9999/"})
        refused = error(await admin.client.get(f"/api/v1/runs/{run_id}/log"), 502)
        assert (refused["code"], "not registered" in refused["message"]) == ("executor_unreachable", True)
        assert admin.log_source.asked == []

    async def test_an_executor_that_missed_its_beats_is_asked_still(self, admin: AdminHarness) -> None:
        run_id = await self.make_run(admin, **SUCCEEDED)
        await admin.clock.advance(600)
        await self.read(admin, run_id)
        assert len(admin.log_source.asked) == 1

    async def test_a_run_that_was_never_accepted_shows_its_dispatch(self, admin: AdminHarness) -> None:
        message = "no live address\nfailed"
        run_id = await self.make_run(admin, phase=None, outcome="failed", trigger_code=500, trigger_msg=message)
        page = await self.read(admin, run_id)
        assert page == {"from_line": 1, "to_line": 2, "content": "no live address\nfailed\n", "is_end": True}
        assert await self.read(admin, run_id, 2) == {**page, "from_line": 2, "content": "failed\n"}
        assert await self.read(admin, run_id, 3) == {**page, "from_line": 3, "content": ""}
        assert admin.log_source.asked == []

    async def test_a_pending_run_has_no_log_yet(self, admin: AdminHarness) -> None:
        run_id = await self.make_run(admin)
        assert await self.read(admin, run_id) == {"from_line": 1, "to_line": 0, "content": "", "is_end": False}


async def test_runs_of_a_deleted_job_go_and_those_of_others_stay(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    gone, kept = await make_job(admin, group_id), await make_job(admin, group_id)
    for _ in range(450):
        await change_run(admin, await add_run(admin, gone["id"]), **SUCCEEDED)
    other = await add_run(admin, kept["id"])
    await admin.client.delete(f"/api/v1/jobs/{gone['id']}")
    assert len(await listed(admin, limit=500)) == 451
    service = DeletedJobs(admin.database, pause_s=0)
    assert await service.run_once() == 450
    assert await listed(admin) == [other]
    assert await service.run_once() == 0
