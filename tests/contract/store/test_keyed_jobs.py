"""Jobs by app name and key on each kind of database: made once however many ask, and the same after a copy."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from jobwheel.admin.api.job_document_models import DocumentBody, export_model
from jobwheel.admin.build import Admin
from jobwheel.admin.domain.job import Job, JobAddress
from jobwheel.admin.services.job_wishes import Action, JobWish
from jobwheel.admin.store.jobs import JobFilter, list_jobs
from tests.support.store import empty

pytestmark = pytest.mark.timeout(30)
AT_ONCE = 6
GIVEN: dict[str, Any] = {"name": "settle", "handler": "settle", "schedule_type": "NONE", "schedule_conf": ""}

EVERYTHING: dict[str, Any] = {
    "groups": [
        {"app_name": "orders", "title": "订单"},
        {"app_name": "fixed", "title": "F", "address_type": "fixed", "addresses": ["http://10.0.0.7:9999/"]},
    ],
    "jobs": [
        {
            "app_name": "orders",
            "key": "结算 #1",
            "name": "settle 'accounts' 账",
            "author": "li",
            "alarm_email": "a@example.com",
            "schedule_type": "CRON",
            "schedule_conf": "0 0 2 * * ?",
            "time_zone": "Europe/Berlin",
            "misfire_strategy": "FIRE_ALL",
            "route_strategy": "ROUND",
            "block_strategy": "COVER_EARLY",
            "handler": "settle",
            "parameter": "a\nb: c",
            "timeout_s": 60,
            "tags": ["night", "money"],
            "valid_from": "2026-01-01T00:00:00Z",
            "valid_until": "2199-01-01T00:00:00Z",
            "pause_windows": [{"from": "2026-12-24T18:00:00Z", "until": "2026-12-27T06:00:00Z", "remark": "holidays"}],
            "run_limit": 2,
            "run_limit_overflow": "DISCARD",
            "status": "running",
        },
        {
            "app_name": "orders",
            "key": "rate",
            "name": "rate",
            "schedule_type": "FIX_RATE",
            "schedule_conf": "60",
            "handler": "rate",
            "status": "running",
        },
        {
            "app_name": "fixed",
            "key": "script",
            "name": "script",
            "schedule_type": "NONE",
            "glue_type": "GLUE_PYTHON",
            "glue_source": "print('账')\n",
            "glue_remark": "says so",
        },
    ],
}


def wish(key: str, **fields: object) -> JobWish:
    return JobWish(JobAddress("orders", key), {**GIVEN, **fields})


async def all_jobs(admin: Admin) -> list[Job]:
    return await admin.database.read(list_jobs, admin.installation.zone, JobFilter(), 0, 1000)


async def test_one_job_however_many_ask_for_it_at_once(admins: list[Admin]) -> None:
    await admins[0].services.groups.create({"app_name": "orders", "title": "T"}, actor="test")
    for key in ("nightly", "hourly"):
        calls = [
            admins[at % 2].services.job_documents.put(wish(key, timeout_s=at % 2), actor="test")
            for at in range(AT_ONCE)
        ]
        done = await asyncio.gather(*calls)
        made = [change for each in done for change in each.jobs]
        assert [each.action for each in made].count(Action.CREATE) == 1
        assert len({each.after.job.id for each in made if each.after}) == 1
    assert sorted(job.settings.key or "" for job in await all_jobs(admins[0])) == ["hourly", "nightly"]


async def test_documents_that_cross_each_other_all_come_through(admins: list[Admin]) -> None:
    """Deadlocks between them are resolved, whoever holds what first."""
    await admins[0].services.groups.create({"app_name": "orders", "title": "T"}, actor="test")
    keys = [f"k{at}" for at in range(8)]
    for key in keys:
        await admins[0].services.job_documents.put(wish(key), actor="test")
    jobs: list[dict[str, Any]] = [{**GIVEN, "app_name": "orders", "key": key} for key in keys]
    documents = [[{**job, "timeout_s": at + 1} for job in jobs[:: 1 if at % 2 else -1]] for at in range(AT_ONCE)]
    calls = [
        admins[at % 2].services.job_documents.apply(
            DocumentBody.model_validate({"jobs": each}).read(), fingerprint=None, actor="test"
        )
        for at, each in enumerate(documents)
    ]
    await asyncio.gather(*calls)
    assert len({job.settings.timeout_s for job in await all_jobs(admins[0])}) == 1


async def test_what_is_exported_makes_equal_jobs_in_an_empty_database(admins: list[Admin]) -> None:
    admin = admins[0]
    documents = admin.services.job_documents
    await documents.apply(DocumentBody.model_validate(EVERYTHING).read(), fingerprint=None, actor="test")
    first = await all_jobs(admin)
    exported = export_model(await documents.export([])).model_dump()
    await admin.database.write(empty)
    await documents.apply(DocumentBody.model_validate(exported).read(), fingerprint=None, actor="test")
    second = await all_jobs(admin)
    groups = dict(zip((job.settings.group_id for job in first), (job.settings.group_id for job in second), strict=True))
    assert [replace(job.settings, group_id=groups[job.settings.group_id]) for job in first] == [
        job.settings for job in second
    ]
    assert [job.running for job in first] == [job.running for job in second] == [True, True, False]
    assert export_model(await documents.export([])).model_dump() == exported
    script = await admin.services.scripts.get(second[2].id)
    assert (script.source, script.remark) == ("print('账')\n", "says so")


async def test_a_plan_changes_nothing(admins: list[Admin]) -> None:
    documents = admins[0].services.job_documents
    document = DocumentBody.model_validate(EVERYTHING).read()
    planned = await documents.plan(document, actor="test")
    assert await all_jobs(admins[0]) == []
    applied = await documents.apply(document, fingerprint=planned.fingerprint, actor="test")
    assert [each.action for each in applied.jobs] == [each.action for each in planned.jobs] == [Action.CREATE] * 3
