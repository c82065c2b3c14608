"""Ids beyond 32 bits, on each kind of database: runs have them, and of nothing else is there one."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from jobwheel.admin.api.access import RULES
from jobwheel.admin.store.tables import job_log
from tests.support.admin_harness import AdminHarness, admin_harness
from tests.support.admin_jobs import add_run, answer, make_job
from tests.support.run_servers import Servers
from tests.support.store import KINDS

LARGE = (2**31 + 5, 2**63 - 1)
_HOURLY = {"schedule_type": "CRON", "schedule_conf": "0 0 * * * ?"}
_TIMES = {"from": "2026-11-26T00:00:00Z", "until": "2026-11-26T01:00:00Z"}
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/api/v1/jobs/{job_id}/backfill"): _TIMES,
    ("PUT", "/api/v1/jobs/{job_id}/script"): {"source": "echo", "remark": "first"},
    ("POST", "/api/v1/groups/{group_id}/drain"): {"address": "http://10.0.0.7:9999/"},
    ("POST", "/api/v1/groups/{group_id}/undrain"): {"address": "http://10.0.0.7:9999/"},
    ("POST", "/api/v1/groups/{group_id}/probe"): {"address": "http://10.0.0.7:9999/"},
}
PATHS = [(rule.method, rule.path) for rule in RULES if re.search(r"_id}", rule.path)]


@pytest.fixture(params=KINDS)
async def admin(request: pytest.FixtureRequest, tmp_path: Path, servers: Servers) -> AsyncIterator[AdminHarness]:
    url = None if request.param == "sqlite" else servers.url_of(request.param)
    async with admin_harness(tmp_path, database_url=url) as harness:
        yield harness


# Named in a query or a body: `{}` and the text `large` stand for the id.
NAMED: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "groups?after={}", None),
    ("GET", "jobs?after={}", None),
    ("GET", "jobs?group_id={}", None),
    ("GET", "runs?after={}", None),
    ("GET", "runs?group_id={}", None),
    ("GET", "runs?job_id={}", None),
    ("GET", "reports/daily?group_id={}", None),
    ("GET", "tokens?after={}", None),
    ("GET", "alarm-channels?after={}", None),
    ("POST", "jobs/bulk", {"action": "start", "ids": ["large"]}),
    ("POST", "jobs/bulk", {"action": "start", "group_id": "large"}),
    ("POST", "jobs", {"name": "x", "handler": "x", "group_id": "large", **_HOURLY}),
    ("POST", "tokens", {"name": "x", "group_id": "large", "right": "read"}),
    ("POST", "runs/clean-up", {"job_id": "large", "which": "all"}),
    ("POST", "runs/clean-up", {"group_id": "large", "which": "all"}),
    ("POST", "runs/rerun", {"ids": ["large"]}),
    ("POST", "runs/rerun", {"job_id": "large"}),
    ("POST", "runs/rerun", {"group_id": "large"}),
]


@pytest.mark.parametrize("large", LARGE)
async def test_nothing_of_so_large_an_id_is_there(admin: AdminHarness, large: int) -> None:
    told = {}
    for method, path in PATHS:
        body = None if method == "GET" else BODIES.get((method, path), {})
        reply = await admin.client.request(method, re.sub(r"{\w+}", str(large), path), json=body)
        told[method, path] = (reply.status_code, reply.text)
    wrong = {each: said for each, said in told.items() if said[0] != 404}
    assert not wrong


async def test_one_that_is_named_is_no_fault_of_the_servers(admin: AdminHarness) -> None:
    told = {}
    for large in LARGE:
        for method, path, body in NAMED:
            given = json.loads(json.dumps(body).replace('"large"', str(large)))
            reply = await admin.client.request(method, f"/api/v1/{path.format(large)}", json=given)
            told[method, path, large] = (reply.status_code, reply.text)
    wrong = {each: said for each, said in told.items() if said[0] >= 500}
    assert not wrong


async def test_a_run_of_so_large_an_id_is_shown_and_killed(admin: AdminHarness) -> None:
    job = await make_job(admin)
    run_id = await add_run(admin, job["id"])
    await admin.database.write(lambda c: c.execute(update(job_log).where(job_log.c.id == run_id).values(id=LARGE[0])))
    for path in ("", "/chain"):
        answer(await admin.client.get(f"/api/v1/runs/{LARGE[0]}{path}"))
    page = answer(await admin.client.get("/api/v1/runs", params={"job_id": job["id"]}))
    assert [each["id"] for each in page["items"]] == [LARGE[0]]
    answer(await admin.client.post(f"/api/v1/runs/{LARGE[0]}/kill", json={}))
