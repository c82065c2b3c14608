"""Draining: an executor gets no new runs, and finishes those that it has."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import select, update

from jobwheel import Executor, JobContext
from jobwheel.admin.store.tables import event, job_group, job_registry
from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import Json, answer, error, make_group, register
from tests.support.live_admin import seen
from tests.support.live_rest import LiveRest, live_rest
from tests.support.recording_executor import INSTANCE

A, B = "http://10.0.0.7:9999/", "http://10.0.0.8:9999/"


async def change(admin: AdminHarness, group_id: int, what: str, address: str = A) -> dict[str, bool]:
    """Drain or undrain; which of the group's addresses are draining afterwards."""
    reply = await admin.client.post(f"/api/v1/groups/{group_id}/{what}", json={"address": address})
    return draining(answer(reply))


def draining(group: Json) -> dict[str, bool]:
    return {each["address"]: each["draining"] for each in group["live_addresses"]}


async def events(admin: AdminHarness) -> list[tuple[str, str, str]]:
    rows = await admin.database.read(lambda c: c.execute(select(event).order_by(event.c.id)).all())
    return [(row.kind, row.actor, row.details) for row in rows if "drained" in row.kind]


async def test_a_drain_is_of_one_address_and_leaves_an_event(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    for address in (A, B):
        await register(admin, "orders", address, f"i-{address}")
    # Without its slash at the end, as people type it.
    assert await change(admin, group_id, "drain", A.rstrip("/")) == {A: True, B: False}
    assert await change(admin, group_id, "drain") == {A: True, B: False}
    assert draining(answer(await admin.client.get(f"/api/v1/groups/{group_id}"))) == {A: True, B: False}
    assert await change(admin, group_id, "undrain") == {A: False, B: False}
    details = '{"app_name": "orders", "address": "http://10.0.0.7:9999/"}'
    assert await events(admin) == [
        ("group.address_drained", "admin", details),
        ("group.address_undrained", "admin", details),
    ]


async def test_a_drain_ends_with_the_process_that_it_means(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    await register(admin, "orders", A, "i-1")
    await register(admin, "orders", B, "i-2")
    assert await change(admin, group_id, "drain") == {A: True, B: False}
    await register(admin, "orders", A, "i-1")
    assert draining(answer(await admin.client.get(f"/api/v1/groups/{group_id}")))[A]
    await register(admin, "orders", A, "i-3")
    assert await change(admin, group_id, "drain", B) == {A: False, B: True}
    settings = await admin.database.read(lambda c: c.execute(select(job_group.c.settings)).scalar_one())
    assert "i-1" not in settings, "kept for a process that is gone"


async def test_an_address_of_a_fixed_list_drains_until_that_is_taken_back(admin: AdminHarness) -> None:
    group_id = await make_group(admin, address_type="fixed", addresses=[B, A])
    assert await change(admin, group_id, "drain") == {B: False, A: True}
    answer(await admin.client.patch(f"/api/v1/groups/{group_id}", json={"title": "New"}))
    assert await change(admin, group_id, "undrain", B) == {B: False, A: True}
    assert await change(admin, group_id, "undrain") == {B: False, A: False}


@pytest.mark.parametrize(
    "address", ["", "http://10.0.0.9:9999/", "x" * 5000, f"{A}'; --"], ids=["none", "other", "long", "quote"]
)
async def test_an_address_that_is_not_there_is_refused_by_name(admin: AdminHarness, address: str) -> None:
    group_id = await make_group(admin)
    await register(admin, "orders", A)
    for what in ("drain", "undrain"):
        reply = await admin.client.post(f"/api/v1/groups/{group_id}/{what}", json={"address": address})
        found = error(reply, 422)
        assert found["field"] == "address"
        assert found["message"].endswith(f"is no live address of orders; live: {A}")
    assert await events(admin) == []
    assert error(await admin.client.post("/api/v1/groups/99/drain", json={"address": A}), 404)


@pytest.mark.parametrize("settings", ["", "{", "[]", '{"drains": 1}', '{"drains": [{}]}', "null"])
async def test_settings_that_somebody_else_wrote_drain_nothing(admin: AdminHarness, settings: str) -> None:
    group_id = await make_group(admin)
    await register(admin, "orders", A)
    await admin.database.write(lambda c: c.execute(update(job_group).values(settings=settings)))
    assert await change(admin, group_id, "undrain") == {A: False}
    assert await change(admin, group_id, "drain") == {A: True}


async def test_other_settings_of_a_group_stay(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    await register(admin, "orders", A)
    await admin.database.write(lambda c: c.execute(update(job_group).values(settings='{"kept": [1]}')))
    await change(admin, group_id, "drain")
    settings = await admin.database.read(lambda c: c.execute(select(job_group.c.settings)).scalar_one())
    assert settings.startswith('{"kept": [1], "drains": [{')


class Beside:
    """An executor on the SDK that notes which runs began there; each waits until it may go on."""

    def __init__(self, rest: LiveRest, folder: Path) -> None:
        self.executor: Executor = rest.executor(folder)
        self.began: list[int] = []
        self.go_on = threading.Event()
        self.executor.register("settle", self._settle)

    def _settle(self, ctx: JobContext) -> None:
        self.began.append(ctx.log_id)
        self.go_on.wait(8)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.executor.port}/"


@contextlib.asynccontextmanager
async def beside(rest: LiveRest, folder: Path) -> AsyncIterator[Beside]:
    made = Beside(rest, folder)
    await asyncio.to_thread(made.executor.start_in_background)
    try:
        yield made
    finally:
        made.go_on.set()
        await asyncio.to_thread(made.executor.stop_in_background)


@pytest.fixture
async def rest(tmp_path: Path) -> AsyncIterator[LiveRest]:
    async with live_rest(tmp_path / "admin") as opened:
        yield opened


async def done(rest: LiveRest, run_id: int) -> Json:
    """The run, once it has ended."""

    async def look() -> Json | None:
        run = await rest.get(f"runs/{run_id}")
        return run if run["phase"] is None else None

    return await seen(look)


async def test_new_runs_go_to_the_other_executor_and_the_one_under_way_ends(rest: LiveRest, tmp_path: Path) -> None:
    async with beside(rest, tmp_path / "one") as one, beside(rest, tmp_path / "two") as two:
        job = await rest.job(executors=2)
        await rest.client.patch(f"/api/v1/jobs/{job['id']}", json={"route_strategy": "FIRST"})
        first = (await rest.post(f"jobs/{job['id']}/run", {}, 201))["id"]
        await seen(lambda: _began(first, one, two))
        drained, other = (one, two) if first in one.began else (two, one)
        group_path = f"groups/{job['group_id']}"
        assert draining(await rest.post(f"{group_path}/drain", {"address": drained.address}))[drained.address]
        other.go_on.set()
        # At once: its executor may not have heard of it yet.
        run_ids = [(await rest.post(f"jobs/{job['id']}/run", {}, 201))["id"] for _ in range(5)]
        runs = [await done(rest, run_id) for run_id in run_ids]
        assert [run["outcome"] for run in runs] == ["succeeded"] * 5
        assert other.began == run_ids
        # The executor obeys by itself, which an admin of another make would run into.
        await seen(lambda: _says_draining(rest, drained, wanted=True))
        drained.go_on.set()
        assert (await done(rest, first))["outcome"] == "succeeded"
        assert drained.began == [first]
        await rest.post(f"{group_path}/undrain", {"address": drained.address})
        await seen(lambda: _says_draining(rest, drained, wanted=False))
        again = (await rest.post(f"jobs/{job['id']}/run", {}, 201))["id"]
        await done(rest, again)
        assert drained.began == [first, again]


async def test_if_all_drain_a_run_fails_and_says_so(rest: LiveRest) -> None:
    async with rest.live.executor(instance=INSTANCE) as executor:
        await executor.register()
        job = await rest.job()
        await rest.post(f"groups/{job['group_id']}/drain", {"address": executor.address})
        reply = await executor.post("registry", executor.registration())
        assert reply["data"] == {"features": {"progress": True, "drain": True}}
        for body in ({}, {"addresses": [executor.address]}):
            run_id = (await rest.post(f"jobs/{job['id']}/run", body, 201))["id"]
            run = await done(rest, run_id)
            assert run["outcome"] == "failed"
            assert (
                f"being drained by an operator, so that no new run goes there: {executor.address}"
                in (run["trigger_message"])
            )
        assert executor.runs() == []


async def _began(run_id: int, *executors: Beside) -> bool:
    return any(run_id in each.began for each in executors)


async def _says_draining(rest: LiveRest, beside: Beside, *, wanted: bool) -> bool:
    """Whether its last beat said that it drains, or that it does not."""
    query = select(job_registry.c.features).where(job_registry.c.registry_value == beside.address)
    features = await rest.live.admin.database.read(lambda c: c.execute(query).scalar_one())
    return f'"draining":{str(wanted).lower()}' in features
