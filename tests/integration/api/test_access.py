"""Who may call what: the table is complete, and it is obeyed."""

import re
from collections.abc import Iterable

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from jobwheel.admin.api.access import RULES, Rule, Who
from jobwheel.admin.api.app import create_routes
from jobwheel.admin.domain.user import Role
from jobwheel.admin.store.tables import job_user
from jobwheel.kernel.secret import Secret
from tests.support.admin_harness import AdminHarness, admin_harness, sign_in
from tests.support.admin_jobs import error, make_job

JSON = {"Content-Type": "application/json"}


def routes_of(app: FastAPI) -> set[tuple[str, str]]:
    found = set()
    for route in iter_route_contexts(app.routes):
        assert route.path, f"{route} is no plain route: teach this test to look into it"
        assert route.methods, f"{route} is no plain route: teach this test to look into it"
        found |= {(method, route.path) for method in route.methods}
    # Starlette's own routes answer HEAD wherever they answer GET; the gate lets it through at /health alone.
    return found - {("HEAD", "/api/v1/openapi.json")}


def concrete(rule: Rule) -> str:
    return re.sub(r"\{\w+\}", "1", rule.path)


def rules(*who: Who) -> list[Rule]:
    return [rule for rule in RULES if rule.who in who]


def name(rule: Rule) -> str:
    return f"{rule.method} {rule.path}"


async def test_every_route_is_in_the_table_and_the_other_way_round(admin: AdminHarness) -> None:
    assert routes_of(create_routes(admin.services)) == {(rule.method, rule.path) for rule in RULES}


async def walk(client: httpx.AsyncClient, walked: Iterable[Rule], **headers: str) -> dict[str, int]:
    """Call each route once and tell its status."""
    return {
        name(rule): (await client.request(rule.method, concrete(rule), headers=headers)).status_code for rule in walked
    }


async def test_a_guest_gets_nothing_but_401(admin: AdminHarness) -> None:
    await make_job(admin)
    closed = rules(Who.SIGNED_IN, Who.ADMIN, Who.METRICS)
    assert await walk(admin.guest, closed) == {name(rule): 401 for rule in closed}
    assert error(await admin.guest.get("/api/v1/jobs"), 401)["code"] == "not_signed_in"


async def test_what_is_open_answers_a_guest(admin: AdminHarness) -> None:
    assert await walk(admin.guest, rules(Who.OPEN, Who.ANYBODY)) == {
        "GET /": 200,
        # Without a name and a password a sign-in is refused, by the route itself.
        "POST /sign-in": 401,
        "POST /sign-out": 303,
        "GET /assets/style.css": 200,
        "GET /health": 200,
        "HEAD /health": 200,
        "POST /api/v1/session": 422,
    }


async def test_an_admin_gets_through_everywhere(admin: AdminHarness) -> None:
    await make_job(admin)
    for rule in RULES:
        if (await admin.client.get("/api/v1/session")).status_code == 401:
            await sign_in(admin.client, admin.password)
        status = (await walk(admin.client, [rule]))[name(rule)]
        assert (status == 401) == (rule.path == "/sign-in"), rule
        assert status not in (403, 405, 500), rule


@pytest.mark.parametrize("role", [Role.USER.value, Role.VIEWER.value, "auditor"])
async def test_who_is_no_admin_gets_his_own_session_alone(admin: AdminHarness, role: str) -> None:
    await admin.database.write(lambda c: c.execute(job_user.update().values(role_name=role)))
    closed = rules(Who.ADMIN, Who.METRICS)
    assert await walk(admin.client, closed) == {name(rule): 403 for rule in closed}
    assert error(await admin.client.get("/api/v1/jobs"), 403)["code"] == "forbidden"
    assert (await admin.client.get("/api/v1/session")).status_code == 200


class TestMetricsToken:
    async def test_it_opens_the_metrics_and_nothing_else(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        headers = {"Authorization": "Bearer m-73-token"}
        async with admin_harness(tmp_path_factory.mktemp("data"), Secret("m-73-token")) as admin:
            assert (await admin.guest.get("/metrics", headers=headers)).status_code == 200
            assert (await admin.guest.get("/api/v1/jobs", headers=headers)).status_code == 401

    @pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic m-73-token", "m-73-token"])
    async def test_a_wrong_one_opens_nothing(self, tmp_path_factory: pytest.TempPathFactory, header: str) -> None:
        async with admin_harness(tmp_path_factory.mktemp("data"), Secret("m-73-token")) as admin:
            assert (await admin.guest.get("/metrics", headers={"Authorization": header})).status_code == 401

    @pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Bearer None"])
    async def test_without_one_set_there_is_none(self, admin: AdminHarness, header: str) -> None:
        assert (await admin.guest.get("/metrics", headers={"Authorization": header})).status_code == 401


CHANGES = [rule for rule in RULES if rule.method not in ("GET", "HEAD")]


class TestForeignOrigin:
    @pytest.mark.parametrize(
        "headers",
        [
            {"Origin": "http://evil.example"},
            {"Origin": "http://jobwheel.test.evil.example"},
            {"Origin": "http://jobwheel.test:8080"},
            {"Origin": "ftp://jobwheel.test"},
            {"Origin": "null"},
            {"Origin": "http://[broken"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ],
        ids=repr,
    )
    async def test_a_change_from_another_site_is_refused(self, admin: AdminHarness, headers: dict[str, str]) -> None:
        job = await make_job(admin)
        assert await walk(admin.client, CHANGES, **headers) == {name(rule): 403 for rule in CHANGES}
        refused = error(await admin.client.post("/api/v1/jobs", headers=headers), 403)
        assert refused["code"] == "foreign_origin"
        assert (await admin.client.get(f"/api/v1/jobs/{job['id']}")).json() == job

    async def test_a_page_without_tls_is_foreign_to_a_server_with_it(self, admin: AdminHarness) -> None:
        job = await make_job(admin)
        url = f"https://jobwheel.test/api/v1/jobs/{job['id']}/start"
        assert (await admin.client.post(url, headers={"Origin": "http://jobwheel.test"})).status_code == 403
        assert (await admin.client.post(url, headers={"Origin": "https://jobwheel.test"})).status_code == 200

    async def test_behind_a_proxy_that_ends_tls_the_page_has_it_and_the_server_has_not(
        self, admin: AdminHarness
    ) -> None:
        job = await make_job(admin)
        headers = {"Origin": "https://jobwheel.test"}
        assert (await admin.client.post(f"/api/v1/jobs/{job['id']}/start", headers=headers)).status_code == 200

    @pytest.mark.parametrize(
        "headers",
        [
            {"Origin": "http://jobwheel.test"},
            {"Origin": "http://jobwheel.test:80"},
            {"Origin": "http://JobWheel.test"},
            {"Origin": "http://jobwheel.test", "Sec-Fetch-Site": "same-origin"},
            {"Sec-Fetch-Site": "none"},
            {},
        ],
        ids=repr,
    )
    async def test_one_from_this_site_or_from_a_program_is_not(
        self, admin: AdminHarness, headers: dict[str, str]
    ) -> None:
        job = await make_job(admin)
        assert (await admin.client.post(f"/api/v1/jobs/{job['id']}/start", headers=headers)).status_code == 200

    async def test_reading_is_not_a_change(self, admin: AdminHarness) -> None:
        assert (await admin.client.get("/api/v1/jobs", headers={"Origin": "http://evil.example"})).status_code == 200


async def test_get_changes_nothing(admin: AdminHarness) -> None:
    await make_job(admin, running=True)
    before = await _everything(admin)
    await walk(admin.client, [rule for rule in RULES if rule.method in ("GET", "HEAD")])
    assert await _everything(admin) == before
    assert (admin.scheduler.wakes, admin.scheduler.flown) == (1, [])


async def _everything(admin: AdminHarness) -> list[str]:
    return await admin.database.read(lambda c: list(c.connection.dbapi_connection.iterdump()))  # type: ignore[union-attr]
