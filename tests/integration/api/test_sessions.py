"""Signing in and out."""

import asyncio
import hashlib
from http.cookies import SimpleCookie
from typing import Any

import httpx
import pytest

from jobwheel.admin.services.users import Users
from jobwheel.admin.store import Connection
from jobwheel.admin.store.tables import event, job_user, session
from jobwheel.kernel.secret import Secret
from tests.support.admin_harness import BASE_URL, AdminHarness, new_client, sign_in
from tests.support.admin_jobs import answer, error

SESSION = "/api/v1/session"
HALF_A_DAY_S, WEEK_S = 12 * 3600, 7 * 24 * 3600


async def attempt(client: httpx.AsyncClient, password: str, username: str = "admin") -> httpx.Response:
    return await client.post(SESSION, json={"username": username, "password": password})


async def test_a_session_lasts_twelve_hours(admin: AdminHarness) -> None:
    reply = await attempt(admin.guest, admin.password)
    assert answer(reply, 201) == {"username": "admin", "role": "admin", "expires_at": "2026-11-27T14:30:00.250Z"}
    assert answer(await admin.guest.get(SESSION))["username"] == "admin"
    admin.clock.step(HALF_A_DAY_S - 1)
    assert (await admin.guest.get(SESSION)).status_code == 200
    admin.clock.step(1)
    assert error(await admin.guest.get(SESSION), 401)["code"] == "not_signed_in"


async def test_or_seven_days_if_asked_to_stay(admin: AdminHarness) -> None:
    body = {"username": "admin", "password": admin.password, "stay_signed_in": True}
    reply = await admin.guest.post(SESSION, json=body)
    assert answer(reply, 201)["expires_at"] == "2026-12-04T02:30:00.250Z"
    assert _cookie(reply)["max-age"] == str(WEEK_S)
    admin.clock.step(WEEK_S)
    assert (await admin.guest.get(SESSION)).status_code == 401


@pytest.mark.parametrize(("base_url", "secure"), [(BASE_URL, False), ("https://jobwheel.test", True)])
async def test_scripts_and_other_sites_cannot_have_the_cookie(admin: AdminHarness, base_url: str, secure: bool) -> None:
    async with new_client(admin.app) as client:
        client.base_url = httpx.URL(base_url)
        cookie = _cookie(await attempt(client, admin.password))
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "lax", "/")
    assert cookie["max-age"] == str(HALF_A_DAY_S)
    assert bool(cookie["secure"]) is secure


async def test_the_database_knows_only_the_hash(admin: AdminHarness) -> None:
    token = admin.client.cookies["jobwheel_session"]
    # 256 bits in base64.
    assert len(token) == 43

    def hashes(connection: Connection) -> list[str]:
        return list(connection.execute(session.select()).scalars())

    assert await admin.database.read(hashes) == [hashlib.sha256(token.encode()).hexdigest()]


async def test_sign_out_ends_the_session_itself(admin: AdminHarness) -> None:
    token = admin.client.cookies["jobwheel_session"]
    reply = await admin.client.delete(SESSION)
    assert (reply.status_code, _cookie(reply)["max-age"]) == (204, "0")
    admin.guest.cookies.set("jobwheel_session", token)
    assert (await admin.guest.get(SESSION)).status_code == 401


async def test_signing_in_and_out_are_events(admin: AdminHarness) -> None:
    await admin.client.delete(SESSION)
    kinds = await admin.database.read(lambda c: [row.kind for row in c.execute(event.select())])
    assert kinds == ["user.created", "user.signed_in", "user.signed_out"]


@pytest.mark.parametrize("cookie", ["", "x", "é", "a" * 5_000, '"', "jobwheel_session"])
async def test_a_cookie_that_is_no_session(admin: AdminHarness, cookie: str) -> None:
    headers = {b"Cookie": f"jobwheel_session={cookie}".encode()}
    assert (await admin.guest.get(SESSION, headers=headers)).status_code == 401


async def test_a_wrong_name_and_a_wrong_password_look_alike(admin: AdminHarness) -> None:
    wrong_password = await attempt(admin.guest, "wrong-password")
    wrong_name = await attempt(admin.guest, admin.password, "nobody")
    assert wrong_password.status_code == wrong_name.status_code == 401
    assert wrong_password.content == wrong_name.content
    assert wrong_password.headers == wrong_name.headers
    assert "set-cookie" not in wrong_name.headers


async def test_a_disabled_user_looks_alike_and_his_sessions_end(admin: AdminHarness) -> None:
    await admin.database.write(lambda c: c.execute(job_user.update().values(disabled=1)))
    assert error(await attempt(admin.guest, admin.password), 401)["code"] == "sign_in_refused"
    assert (await admin.client.get(SESSION)).status_code == 401


class TestThrottle:
    async def test_the_sixth_failure_of_a_name_has_to_wait_longer_and_longer(self, admin: AdminHarness) -> None:
        for _ in range(5):
            assert (await attempt(admin.guest, "wrong-password")).status_code == 401
        waits = []
        for _ in range(8):
            refused = await attempt(admin.guest, admin.password)
            assert error(refused, 429)["code"] == "sign_in_throttled"
            waits.append(int(refused.headers["Retry-After"]))
            await admin.clock.advance(waits[-1])
            assert (await attempt(admin.guest, "wrong-password")).status_code == 401
        assert waits == [2, 3, 5, 9, 17, 33, 61, 61]
        await admin.clock.advance(61)
        assert (await attempt(admin.guest, admin.password)).status_code == 201

    async def test_a_hundred_tries_at_once_are_a_hundred(self, admin: AdminHarness) -> None:
        replies = await asyncio.gather(*(attempt(admin.guest, f"guess-{number}") for number in range(30)))
        assert sorted(reply.status_code for reply in replies) == [401] * 5 + [429] * 25

    async def test_an_address_that_tries_many_names(self, admin: AdminHarness) -> None:
        statuses = [(await attempt(admin.guest, "wrong", f"user{number}")).status_code for number in range(21)]
        assert statuses == [401] * 20 + [429]
        other = httpx.ASGITransport(app=admin.app, client=("192.0.2.2", 1))
        async with httpx.AsyncClient(transport=other, base_url=BASE_URL) as client:
            assert (await attempt(client, admin.password)).status_code == 201

    async def test_a_success_clears_the_name(self, admin: AdminHarness) -> None:
        for _ in range(3):
            for _ in range(4):
                assert (await attempt(admin.guest, "wrong-password")).status_code == 401
            await sign_in(admin.guest, admin.password)

    async def test_a_quiet_quarter_of_an_hour_clears_it_too(self, admin: AdminHarness) -> None:
        for _ in range(5):
            await attempt(admin.guest, "wrong-password")
        await admin.clock.advance(900)
        assert [(await attempt(admin.guest, "wrong-password")).status_code for _ in range(6)] == [401] * 5 + [429]


class TestPassword:
    async def test_a_change_ends_all_sessions_of_the_user(self, admin: AdminHarness) -> None:
        await sign_in(admin.guest, admin.password)
        body = {"old_password": admin.password, "new_password": "brand-new-secret"}
        assert (await admin.client.post(f"{SESSION}/password", json=body)).status_code == 204
        assert (await admin.guest.get(SESSION)).status_code == 401
        assert (await attempt(admin.guest, admin.password)).status_code == 401
        assert (await attempt(admin.guest, "brand-new-secret")).status_code == 201

    async def test_the_old_one_is_asked_for(self, admin: AdminHarness) -> None:
        body = {"old_password": "wrong-password", "new_password": "brand-new-secret"}
        refused = error(await admin.client.post(f"{SESSION}/password", json=body), 403)
        assert (refused["code"], refused["field"]) == ("wrong_password", "old_password")
        assert (await admin.client.get(SESSION)).status_code == 200
        assert (await attempt(admin.guest, admin.password)).status_code == 201

    async def test_guessing_the_old_one_is_throttled(self, admin: AdminHarness) -> None:
        body = {"old_password": "wrong-password", "new_password": "brand-new-secret"}
        statuses = [(await admin.client.post(f"{SESSION}/password", json=body)).status_code for _ in range(6)]
        assert statuses == [403] * 5 + [429]

    @pytest.mark.parametrize("password", ["short", "x" * 257])
    async def test_a_new_one_must_fit(self, admin: AdminHarness, password: str) -> None:
        body = {"old_password": admin.password, "new_password": password}
        assert error(await admin.client.post(f"{SESSION}/password", json=body), 422)["field"] == "new_password"

    async def test_the_operator_can_set_one_without_the_old(self, admin: AdminHarness) -> None:
        users = Users(admin.database, admin.clock, admin.passwords)
        await users.set_password("admin", Secret("set-by-operator"))
        assert (await admin.client.get(SESSION)).status_code == 401
        assert (await attempt(admin.guest, "set-by-operator")).status_code == 201


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"username": "admin"},
        {"username": "", "password": "x"},
        {"username": "admin", "password": ""},
        {"username": "x" * 51, "password": "x"},
        {"username": "admin", "password": "x" * 1025},
        {"username": "admin", "password": "x", "stay_signed_in": "yes"},
        {"username": ["admin"], "password": "x"},
        {"username": "admin", "password": "x", "role": "admin"},
    ],
)
async def test_bad_bodies(admin: AdminHarness, body: dict[str, object]) -> None:
    assert error(await admin.guest.post(SESSION, json=body), 422)["field"]


def _cookie(reply: httpx.Response) -> dict[str, Any]:
    cookie = SimpleCookie(reply.headers["set-cookie"])
    assert list(cookie) == ["jobwheel_session"]
    return dict(cookie["jobwheel_session"])
