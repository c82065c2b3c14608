"""Requests that wait for the end of a run: with an answer when it ends, wherever that is, and never for ever."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.services import run_waits
from jobwheel.admin.store.tables import job_log
from tests.support.admin_harness import NOW_MS, AdminHarness
from tests.support.admin_jobs import add_run, answer, change_run, error, make_job
from tests.support.eventually import eventually

ENDED = {"phase": None, "outcome": "succeeded", "trigger_code": 200, "handle_code": 200, "ended_ms": NOW_MS + 900}

Reply = asyncio.Task[httpx.Response]


@pytest.fixture
async def run_id(admin: AdminHarness) -> AsyncIterator[RunId]:
    """An open run, of an admin that lets requests wait."""
    made = await add_run(admin, (await make_job(admin))["id"])
    await admin.waits.start()
    yield made
    await admin.waits.stop()


async def ask(admin: AdminHarness, run_id: int, wait_s: int = 60) -> Reply:
    """A request that waits by now."""
    # Not how many wait for the clock: the loop that looks for ended runs does so, too, from some moment on.
    before = admin.waits._count
    task = asyncio.create_task(admin.client.get(f"/api/v1/runs/{run_id}", params={"wait_s": wait_s}))
    await eventually(lambda: admin.waits._count > before)
    return task


async def test_the_answer_comes_when_the_run_has_ended(admin: AdminHarness, run_id: RunId) -> None:
    other = await add_run(admin, answer(await admin.client.get(f"/api/v1/runs/{run_id}"))["job_id"])
    waiting = [await ask(admin, each) for each in (run_id, run_id, other)]
    # Written to the database and told to nobody here, as by another node.
    await change_run(admin, run_id, **ENDED)
    await admin.clock.advance(run_waits.LOOK_EVERY_S)
    replies = await asyncio.gather(*waiting[:2])
    assert [answer(reply)["outcome"] for reply in replies] == ["succeeded"] * 2
    await admin.clock.advance(run_waits.LOOK_EVERY_S)
    assert not waiting[2].done()
    await admin.clock.advance(60)
    assert answer(await waiting[2])["phase"] == "pending"


async def test_who_does_not_wait_and_what_is_done_is_answered_at_once(admin: AdminHarness, run_id: RunId) -> None:
    for wait_s in (None, 0):
        reply = await admin.client.get(f"/api/v1/runs/{run_id}", params={} if wait_s is None else {"wait_s": wait_s})
        assert answer(reply)["phase"] == "pending"
    await change_run(admin, run_id, **ENDED)
    assert answer(await admin.client.get(f"/api/v1/runs/{run_id}?wait_s=60"))["outcome"] == "succeeded"
    assert error(await admin.client.get("/api/v1/runs/4711?wait_s=60"), 404)["code"] == "not_found"
    for bad in ("-1", "61", "soon", "1.5"):
        assert error(await admin.client.get(f"/api/v1/runs/{run_id}?wait_s={bad}"), 422)["field"] == "wait_s"


async def test_a_run_that_goes_meanwhile_is_not_there(admin: AdminHarness, run_id: RunId) -> None:
    waiting = await ask(admin, run_id)
    await admin.database.write(lambda c: c.execute(job_log.delete().where(job_log.c.id == run_id)))
    await admin.clock.advance(run_waits.LOOK_EVERY_S)
    assert error(await waiting, 404)["code"] == "not_found"


async def test_a_stop_of_the_admin_ends_the_waiting(admin: AdminHarness, run_id: RunId) -> None:
    waiting = await ask(admin, run_id)
    await admin.waits.stop()
    assert answer(await waiting)["phase"] == "pending"
    assert answer(await admin.client.get(f"/api/v1/runs/{run_id}?wait_s=60"))["phase"] == "pending"


async def test_only_so_many_wait(admin: AdminHarness, run_id: RunId, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_waits, "MOST_WAITING", 2)
    waiting = [await ask(admin, run_id) for _ in range(2)]
    refused = error(await admin.client.get(f"/api/v1/runs/{run_id}?wait_s=60"), 503)
    assert (refused["code"], refused["field"]) == ("too_many_waiting", "wait_s")
    await admin.clock.advance(60)
    for each in waiting:
        answer(await each)
    # There is room again.
    again = await ask(admin, run_id)
    await admin.clock.advance(60)
    answer(await again)
