"""Groups, jobs and runs for tests of the admin, made through the API and the store."""

from typing import Any

import httpx

from jobwheel.admin.domain.group import Registration
from jobwheel.admin.domain.ids import GroupId, JobId, NodeId, RunId
from jobwheel.admin.domain.run import NewRun, TriggerType
from jobwheel.admin.store import Connection
from jobwheel.admin.store.registry import beat
from jobwheel.admin.store.run_list import RunFilter
from jobwheel.admin.store.runs import insert_runs
from jobwheel.admin.store.tables import job_info, job_log
from jobwheel.wire.messages import Features, RegistryRequest
from tests.support.admin_harness import AdminHarness

EVERY_5_S = {"schedule_type": "CRON", "schedule_conf": "0/5 * * * * ?"}
Json = dict[str, Any]


def answer(reply: httpx.Response, status: int = 200) -> Json:
    """The reply's JSON, if it has the status."""
    assert reply.status_code == status, f"{reply.status_code}: {reply.text}"
    value = reply.json()
    assert isinstance(value, dict)
    return value


def error(reply: httpx.Response, status: int) -> Json:
    """The error of a reply that has the status and the one shape of errors."""
    value = answer(reply, status)
    assert set(value) == {"error"}
    found = value["error"]
    assert set(found) == {"code", "message", "field"}
    assert found["message"]
    assert "\n" not in found["message"]
    return dict(found)


async def make_group(admin: AdminHarness, app_name: str = "orders", **fields: object) -> int:
    reply = await admin.client.post("/api/v1/groups", json={"app_name": app_name, "title": "Orders", **fields})
    return int(answer(reply, 201)["id"])


async def make_job(admin: AdminHarness, group_id: int | None = None, **fields: object) -> Json:
    """A job that runs every five seconds unless the fields say otherwise."""
    if group_id is None:
        group_id = await make_group(admin)
    body = {"group_id": group_id, "name": "settle accounts", "handler": "settle", **EVERY_5_S, **fields}
    return answer(await admin.client.post("/api/v1/jobs", json=body), 201)


async def read_job(admin: AdminHarness, job_id: int) -> Json:
    return answer(await admin.client.get(f"/api/v1/jobs/{job_id}"))


async def patch_job(admin: AdminHarness, job_id: int, **fields: object) -> Json:
    return answer(await admin.client.patch(f"/api/v1/jobs/{job_id}", json=fields))


async def read_events(admin: AdminHarness, job_id: int) -> list[Json]:
    """A job's events, oldest first."""
    items = answer(await admin.client.get(f"/api/v1/jobs/{job_id}/events", params={"limit": 500}))["items"]
    return list(reversed(items))


async def event_kinds(admin: AdminHarness, job_id: int) -> list[str]:
    return [each["kind"] for each in await read_events(admin, job_id)]


async def plan(admin: AdminHarness, job_id: int, *planned_ms: int, next_ms: int | None = None) -> list[int]:
    """What a claim does: pending runs at these instants, and the job's next and last time moved on."""
    group_id = (await read_job(admin, job_id))["group_id"]
    runs = [_run(job_id, group_id, each, TriggerType.CRON) for each in planned_ms]

    def claim(connection: Connection) -> list[int]:
        pending = insert_runs(connection, admin.zone, runs)
        values: dict[str, object] = {"trigger_last_time": max(planned_ms, default=0)}
        if next_ms is not None:
            values["trigger_next_time"] = next_ms
        connection.execute(job_info.update().where(job_info.c.id == job_id).values(values))
        return [run.id for run in pending]

    return await admin.database.write(claim)


async def finish_job(admin: AdminHarness, job_id: int) -> None:
    """What a claim does to a job that has no further time."""
    values = {"trigger_status": 0, "trigger_next_time": 0}
    await admin.database.write(lambda c: c.execute(job_info.update().where(job_info.c.id == job_id).values(values)))


async def stored_next_ms(admin: AdminHarness, job_id: int) -> int:
    def read(connection: Connection) -> int:
        query = job_info.select().where(job_info.c.id == job_id)
        return int(connection.execute(query).one().trigger_next_time)

    return await admin.database.read(read)


async def pending_planned(admin: AdminHarness, job_id: int) -> list[int]:
    """The planned times of the job's pending runs."""
    runs = await admin.services.runs.page(RunFilter(job_id=JobId(job_id)), None, 500)
    return sorted(run.planned_ms or 0 for run in runs if run.phase == "pending")


async def change_run(admin: AdminHarness, run_id: int, **columns: object) -> None:
    """Put a run into a state, as the engine would."""
    if not columns:
        return
    await admin.database.write(lambda c: c.execute(job_log.update().where(job_log.c.id == run_id).values(columns)))


async def add_run(admin: AdminHarness, job_id: int, trigger_type: TriggerType = TriggerType.CRON) -> RunId:
    """A pending run that is due now."""
    group_id = (await read_job(admin, job_id))["group_id"]
    run = _run(job_id, group_id, admin.clock.now(), trigger_type)
    pending = await admin.database.write(insert_runs, admin.zone, [run])
    return pending[0].id


async def register(
    admin: AdminHarness, app_name: str, address: str, instance: str = "i-1", queued: int = 0
) -> Registration:
    """An executor's beat."""
    features = Features(instance=instance, queued=queued)
    request = RegistryRequest(
        registry_group="EXECUTOR", registry_key=app_name, registry_value=address, features=features
    )
    now_ms = admin.database.now_ms()
    await admin.database.write(beat, admin.zone, request, now_ms)
    return Registration(app_name, address, now_ms, instance)


def _run(job_id: int, group_id: int, planned_ms: int, trigger_type: TriggerType) -> NewRun:
    return NewRun(
        job_id=JobId(job_id),
        group_id=GroupId(group_id),
        trigger_type=trigger_type,
        planned_ms=planned_ms,
        due_ms=planned_ms,
        triggered_ms=planned_ms - planned_ms % 1000,
        parameter="",
        owner=NodeId(1),
    )
