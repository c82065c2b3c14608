"""Tokens of groups over REST: made, rotated, revoked, and told once."""

import pytest
from sqlalchemy import select

from jobwheel.admin.store.tables import event, job_group
from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import Json, answer, error, make_group

DAY_S = 86_400


def path(group_id: int, more: str = "") -> str:
    return f"/api/v1/groups/{group_id}/tokens{more}"


async def listed(admin: AdminHarness, group_id: int) -> list[Json]:
    items: list[Json] = answer(await admin.client.get(path(group_id)))["items"]
    return items


async def test_a_token_is_shown_once_and_masked_afterwards(
    admin: AdminHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    group_id = await make_group(admin)
    made = answer(await admin.client.post(path(group_id)), 201)
    token = made["token"]
    assert token.startswith("jwg_")
    assert len(token) > 40
    masked = {**made, "token": f"***{token[-4:]}"}
    assert await listed(admin, group_id) == [masked]
    assert masked["created_by"] == "admin"
    assert masked["expires_at"] is None
    group = answer(await admin.client.get(f"/api/v1/groups/{group_id}"))
    events = await admin.database.read(lambda c: c.execute(select(event)).all())
    assert token not in repr((group, events, caplog.text))
    assert (events[-1].kind, events[-1].details) == ("group.token_made", '{"app_name": "orders", "token": 1}')


async def test_an_edit_of_the_group_leaves_its_tokens(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    await admin.client.post(path(group_id))
    await admin.client.patch(f"/api/v1/groups/{group_id}", json={"title": "Renamed"})
    assert [each["id"] for each in await listed(admin, group_id)] == [1]


async def test_a_rotation_gives_the_old_one_an_end(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    old = answer(await admin.client.post(path(group_id)), 201)
    new = answer(await admin.client.post(path(group_id, "/rotate"), json={"overlap_s": 60}), 201)
    assert new["token"] != old["token"]
    ends = [(each["id"], each["expires_at"]) for each in await listed(admin, group_id)]
    assert ends == [(2, None), (1, "2026-11-27T02:31:00.250Z")]
    refused = error(await admin.client.post(path(group_id, "/rotate")), 409)
    assert refused["code"] == "too_many_tokens"
    assert "revoke the token 1" in refused["message"]
    await admin.clock.advance(60)
    assert [each["id"] for each in await listed(admin, group_id)] == [2]
    third = answer(await admin.client.post(path(group_id, "/rotate")), 201)
    assert third["id"] == 3
    assert (await listed(admin, group_id))[1]["expires_at"] == "2026-11-28T02:31:00.250Z"


async def test_a_rotation_without_an_overlap_ends_the_old_one_at_once(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    await admin.client.post(path(group_id))
    answer(await admin.client.post(path(group_id, "/rotate"), json={"overlap_s": 0}), 201)
    assert [each["id"] for each in await listed(admin, group_id)] == [2]


async def test_a_revoked_token_is_gone_and_its_id_is_not_given_again(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    await admin.client.post(path(group_id))
    assert (await admin.client.delete(path(group_id, "/1"))).status_code == 204
    assert await listed(admin, group_id) == []
    assert (await admin.client.delete(path(group_id, "/1"))).status_code == 404
    assert answer(await admin.client.post(path(group_id)), 201)["id"] == 2
    kinds = await admin.database.read(lambda c: c.execute(select(event.c.kind).order_by(event.c.id)).scalars().all())
    assert list(kinds)[-3:] == ["group.token_made", "group.token_revoked", "group.token_made"]


async def test_what_is_refused_changes_nothing(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    assert error(await admin.client.post(path(group_id, "/rotate")), 404)["code"] == "not_found"
    await admin.client.post(path(group_id))
    column = select(job_group.c.access_tokens)
    before = await admin.database.read(lambda c: c.execute(column).scalar_one())
    assert error(await admin.client.post(path(group_id)), 409)["code"] == "too_many_tokens"
    for overlap_s in (-1, 91 * DAY_S):
        body = {"overlap_s": overlap_s}
        assert error(await admin.client.post(path(group_id, "/rotate"), json=body), 422)["field"] == "overlap_s"
    for more, method in (("", "GET"), ("", "POST"), ("/rotate", "POST"), ("/1", "DELETE")):
        assert (await admin.client.request(method, path(4711, more))).status_code == 404
    assert await admin.database.read(lambda c: c.execute(column).scalar_one()) == before


@pytest.mark.parametrize("column", ["", "[]", "null", "no JSON", '{"tokens": [{"id": 1}]}', '["a", "b"]'])
async def test_a_column_that_nobody_of_ours_wrote_holds_no_tokens(admin: AdminHarness, column: str) -> None:
    group_id = await make_group(admin)
    await admin.database.write(lambda c: c.execute(job_group.update().values(access_tokens=column)))
    assert await listed(admin, group_id) == []
    assert answer(await admin.client.post(path(group_id)), 201)["id"] == 1
