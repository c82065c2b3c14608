"""One of everything in a group, for tests of what callers may see."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx

from jobwheel.admin.api.access import Rule
from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import add_run, answer, change_run, make_group, make_job, register
from tests.support.api_tokens import token_client

ADDRESS = "http://10.0.0.7:9999/"
FAILED = {"phase": None, "outcome": "failed", "trigger_code": 200, "handle_code": 500}
SCRIPT = {"glue_type": "GLUE_SHELL", "handler": ""}


@dataclass
class Things:
    """One of everything, in a group of its own."""

    app_name: str
    group_id: int
    job_id: int
    script_job_id: int
    run_id: int
    done_run_id: int
    version_id: int
    clean_up_id: int

    def path(self, rule: Rule) -> str:
        job_id = self.script_job_id if "script" in rule.path else self.job_id
        return rule.path.format(
            app_name=self.app_name,
            key="keyed",
            group_id=self.group_id,
            job_id=job_id,
            run_id=self.run_id,
            version_id=self.version_id,
            clean_up_id=self.clean_up_id,
            token_id=1,
            channel_id=1,
        )


async def make_things(admin: AdminHarness, app_name: str) -> Things:
    group_id = await make_group(admin, app_name)
    await register(admin, app_name, ADDRESS)
    job_id = (await make_job(admin, group_id, key="settle"))["id"]
    script_job_id = (await make_job(admin, group_id, key="script", **SCRIPT))["id"]
    await make_job(admin, group_id, key="keyed")
    versions = answer(await admin.client.get(f"/api/v1/jobs/{script_job_id}/script/versions"))["items"]
    run_id, done_run_id = await add_run(admin, job_id), await add_run(admin, script_job_id)
    await change_run(admin, done_run_id, **FAILED)
    wish = {"which": "but_last_1000", "group_id": group_id}
    clean_up = answer(await admin.client.post("/api/v1/runs/clean-up", json=wish), 202)
    version_id = versions[0]["id"]
    return Things(app_name, group_id, job_id, script_job_id, run_id, done_run_id, version_id, clean_up["id"])


async def everything(admin: AdminHarness) -> list[str]:
    return await admin.database.read(lambda c: list(c.connection.dbapi_connection.iterdump()))  # type: ignore[union-attr]


@contextlib.asynccontextmanager
async def of_group(admin: AdminHarness, things: Things) -> AsyncIterator[httpx.AsyncClient]:
    async with token_client(admin, access="write", group_id=things.group_id) as client:
        yield client
