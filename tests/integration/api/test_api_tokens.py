"""Tokens of programs: made, shown once, listed, over."""

import pytest
from sqlalchemy import select

from jobwheel.admin.services.throttle import PER_ADDRESS
from jobwheel.admin.store.tables import api_token, event
from tests.support.admin_harness import AdminHarness, new_client
from tests.support.admin_jobs import answer, error, make_group
from tests.support.api_tokens import carrying, make_token, token_client

JOBS = "/api/v1/jobs"


async def test_a_token_is_shown_once_and_kept_as_a_hash(admin: AdminHarness, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    group_id = await make_group(admin)
    made = await make_token(admin, name=" ci ", access="write", group_id=group_id, expires_at="2027-01-01T00:00:00Z")
    token = made.pop("token")
    assert made == {
        "id": 1,
        "name": "ci",
        "access": "write",
        "group_id": group_id,
        "created_by": "admin",
        "created_at": "2026-11-27T02:30:00.250Z",
        "expires_at": "2027-01-01T00:00:00.000Z",
    }
    assert answer(await admin.client.get("/api/v1/tokens")) == {"items": [made], "next": None}
    async with carrying(admin, token) as client:
        assert (await client.get(JOBS)).status_code == 200
    assert (await admin.client.delete("/api/v1/tokens/1")).status_code == 204
    events = await admin.database.read(lambda c: c.execute(select(event)).all())
    assert [each.kind for each in events][-2:] == ["token.made", "token.revoked"]
    stored = await admin.database.read(lambda c: list(c.connection.dbapi_connection.iterdump()))  # type: ignore[union-attr]
    assert not [text for text in (*stored, caplog.text, repr(events)) if token in text]


async def test_it_is_over_when_it_says_so(admin: AdminHarness) -> None:
    async with token_client(admin, expires_at="2026-11-27T02:31:00Z") as client:
        assert (await client.get(JOBS)).status_code == 200
        await admin.clock.advance(60)
        refused = error(await client.get(JOBS), 401)
        assert refused["code"] == "not_signed_in"
        assert "API token" in refused["message"]


async def test_it_is_over_when_it_is_revoked(admin: AdminHarness) -> None:
    async with token_client(admin) as client:
        assert (await client.get(JOBS)).status_code == 200
        await admin.client.delete("/api/v1/tokens/1")
        assert (await client.get(JOBS)).status_code == 401
    assert error(await admin.client.delete("/api/v1/tokens/1"), 404)["message"] == "there is no API token 1"


async def test_it_goes_with_its_group(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    async with token_client(admin, group_id=group_id) as client, token_client(admin) as other:
        assert (await admin.client.delete(f"/api/v1/groups/{group_id}")).status_code == 204
        assert (await client.get(JOBS)).status_code == 401
        assert (await other.get(JOBS)).status_code == 200


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"name": ""}, 422, "name"),
        ({"name": "x" * 49}, 422, "name"),
        ({"access": "all"}, 422, "read, write, scripts"),
        ({"expires_at": "2026-11-27T02:30:00Z"}, 422, "is over"),
        ({"expires_at": "soon"}, 422, "expires_at"),
        ({"group_id": 4711}, 404, "group 4711"),
        ({"admin": True}, 422, "admin"),
    ],
)
async def test_bad_wishes_make_nothing(admin: AdminHarness, fields: dict[str, object], status: int, words: str) -> None:
    refused = error(await admin.client.post("/api/v1/tokens", json={"name": "ci", **fields}), status)
    assert words in refused["message"]
    assert await admin.database.read(lambda c: c.execute(select(api_token)).all()) == []


class TestBearer:
    @pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Bearer wrong", "bearer jwa_wrong"])
    async def test_a_wrong_one_is_not_made_good_by_a_session(self, admin: AdminHarness, header: str) -> None:
        assert (await admin.client.get(JOBS, headers={"Authorization": header})).status_code == 401

    async def test_another_scheme_is_no_token(self, admin: AdminHarness) -> None:
        assert (await admin.client.get(JOBS, headers={"Authorization": "Basic YTpi"})).status_code == 200

    async def test_the_origin_does_not_matter_to_it(self, admin: AdminHarness) -> None:
        foreign = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
        group_id = await make_group(admin)
        body = {"group_id": group_id, "name": "x", "handler": "settle", "schedule_type": "NONE"}
        async with token_client(admin, access="write") as client:
            assert (await client.post(JOBS, json=body, headers=foreign)).status_code == 201

    async def test_it_does_not_lend_a_session_its_origin(self, admin: AdminHarness) -> None:
        token = (await make_token(admin))["token"]
        headers = {"Origin": "http://evil.example", "Authorization": f"Bearer {token}"}
        for method, path in (("POST", "/sign-out"), ("DELETE", "/api/v1/session"), ("POST", "/api/v1/session")):
            assert (await admin.client.request(method, path, headers=headers)).status_code == 403, path
        assert (await admin.client.get("/api/v1/session")).status_code == 200

    async def test_it_opens_no_session_and_no_page(self, admin: AdminHarness) -> None:
        await make_group(admin)
        async with token_client(admin, access="scripts") as client:
            assert (await client.get("/api/v1/session")).status_code == 401
            refused = error(await client.get("/metrics"), 401)["message"]
            assert refused.endswith("or send the token in JOBWHEEL_METRICS_TOKEN; API tokens do not read metrics")
            refused = error(await client.get("/api/v1/session"), 401)["message"]
            assert refused == "sign in first (POST /api/v1/session)"
            assert "orders" not in (await client.get("/")).text


class TestGuesses:
    async def guess(self, admin: AdminHarness, count: int) -> list[int]:
        statuses = []
        for number in range(count):
            headers = {"Authorization": f"Bearer jwa_{number}"}
            statuses.append((await admin.guest.get(JOBS, headers=headers)).status_code)
        return statuses

    async def test_they_are_slowed_down(self, admin: AdminHarness) -> None:
        free = PER_ADDRESS.free_failures
        assert await self.guess(admin, free + 1) == [401] * free + [429]
        async with new_client(admin.app) as client:
            reply = await client.get(JOBS, headers={"Authorization": "Bearer x"})
        assert error(reply, 429)["code"] == "too_many_guesses"
        assert reply.headers["retry-after"] == "2"
        await admin.clock.advance(1)
        assert await self.guess(admin, 2) == [401, 429]

    async def test_a_neighbour_whose_token_is_right_is_not(self, admin: AdminHarness) -> None:
        async with token_client(admin) as client, token_client(admin) as late:
            assert (await client.get(JOBS)).status_code == 200
            await self.guess(admin, PER_ADDRESS.free_failures + 1)
            assert (await client.get(JOBS)).status_code == 200
            assert (await late.get(JOBS)).status_code == 429
            # Known once, and revoked: it is a guess like any other.
            await admin.client.delete("/api/v1/tokens/1")
            assert [(await client.get(JOBS)).status_code for _ in range(2)] == [401, 429]
