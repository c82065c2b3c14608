"""Channels of alarms over REST, and what jobs say of them."""

import asyncio
import logging

import pytest

from jobwheel.admin.store.tables import alarm_channel, event
from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import Json, answer, error, make_job
from tests.support.http_peer import HttpPeer, reply, unused_port

PATH = "/api/v1/alarm-channels"
HOOK = "https://hooks.example.com/T0/key-7351-in-path"


async def make(admin: AdminHarness, **fields: object) -> Json:
    body = {"name": "ops", "kind": "dingtalk", "settings": {"url": HOOK, "secret": "key-7351-secret"}, **fields}
    return answer(await admin.client.post(PATH, json=body), 201)


async def test_a_channel_is_made_changed_and_deleted(admin: AdminHarness) -> None:
    made = await make(admin, is_default=True)
    assert made == {
        "id": made["id"],
        "name": "ops",
        "kind": "dingtalk",
        "settings": {"url": "https://hooks.example.com/***", "secret": "***"},
        "disabled": False,
        "is_default": True,
        "for_admins": False,
        "version": 0,
    }
    path = f"{PATH}/{made['id']}"
    assert answer(await admin.client.get(path)) == made
    assert answer(await admin.client.get(PATH)) == {"items": [made], "next": None}
    changed = answer(
        await admin.client.patch(path, json={"disabled": True, "settings": {"secret": None}, "version": 0})
    )
    assert changed == {**made, "disabled": True, "settings": {"url": "https://hooks.example.com/***"}, "version": 1}
    assert (await admin.client.delete(path)).status_code == 204
    assert error(await admin.client.get(path), 404)["code"] == "not_found"


async def test_what_was_shown_can_be_given_back(admin: AdminHarness) -> None:
    made = await make(admin)
    same = answer(await admin.client.patch(f"{PATH}/{made['id']}", json={"settings": made["settings"]}))
    assert same == made
    stored = await admin.database.read(lambda c: c.execute(alarm_channel.select()).one().settings)
    assert "key-7351-secret" in stored
    assert "key-7351-in-path" in stored


async def test_no_secret_leaves_the_database(admin: AdminHarness, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    made = await make(admin)
    path = f"{PATH}/{made['id']}"
    url = f"http://127.0.0.1:{unused_port()}/key-7351"
    bad = {"settings": {"url": "no-url-key-7351-", "secret": "key-7351-new"}}
    replies = [
        await admin.client.patch(path, json={"settings": {"url": url, "secret": "key-7351-other"}}),
        await admin.client.patch(path, json=bad),
        await admin.client.post(f"{path}/test"),
        await admin.client.get(PATH),
        await admin.client.delete(path),
    ]
    told = [reply.text for reply in replies[:1] + replies[2:]] + [caplog.text]
    told.append(repr(await admin.database.read(lambda c: c.execute(event.select()).all())))
    assert not [text for text in told if "key-7351" in text]


async def test_changes_are_events(admin: AdminHarness) -> None:
    made = await make(admin)
    path = f"{PATH}/{made['id']}"
    await admin.client.patch(path, json={"settings": {"secret": "another"}})
    await admin.client.patch(path, json={"name": "night"})
    await admin.client.patch(path, json={"name": "night"})
    await admin.client.delete(path)
    rows = await admin.database.read(
        lambda c: c.execute(event.select().where(event.c.kind.startswith("alarm_channel.")).order_by(event.c.id)).all()
    )
    assert [(row.kind, row.actor) for row in rows] == [
        ("alarm_channel.created", "admin"),
        ("alarm_channel.updated", "admin"),
        ("alarm_channel.updated", "admin"),
        ("alarm_channel.deleted", "admin"),
    ]
    assert '"settings_changed": true' in rows[1].details
    assert "settings_changed" not in rows[2].details


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"kind": "pager"}, "kind", "is not one of dingtalk, feishu, lark, mail, slack, webhook, wecom"),
        ({"name": " "}, "name", "required"),
        ({"name": "x" * 65}, "name", "65 characters"),
        ({"settings": {}}, "settings.url", "is required"),
        ({"settings": {"url": HOOK, "uri": 1}}, "settings.uri", "valid ones are url, secret"),
        ({"kind": "webhook", "settings": {"url": HOOK, "body": "{{ x }}"}}, "settings.body", "no field 'x'"),
        ({"settings": []}, "settings", "not a JSON object"),
        ({"disabled": "yes"}, "disabled", "neither true nor false"),
    ],
)
async def test_bad_input_is_named_and_makes_nothing(admin: AdminHarness, change: Json, field: str, words: str) -> None:
    body = {"name": "ops", "kind": "dingtalk", "settings": {"url": HOOK}, **change}
    refused = error(await admin.client.post(PATH, json=body), 422)
    assert refused["field"] == field
    assert words in refused["message"]
    assert answer(await admin.client.get(PATH))["items"] == []


async def test_names_are_taken_once_and_kinds_stay(admin: AdminHarness) -> None:
    made = await make(admin)
    other = await make(admin, name="night")
    body = {"name": "ops", "kind": "slack", "settings": {"url": HOOK}}
    assert error(await admin.client.post(PATH, json=body), 409)["code"] == "taken"
    assert error(await admin.client.patch(f"{PATH}/{other['id']}", json={"name": "ops"}), 409)["code"] == "taken"
    stale = {"name": "day", "version": 7}
    assert error(await admin.client.patch(f"{PATH}/{made['id']}", json=stale), 409)["code"] == "version_conflict"


async def test_a_test_message_tells_what_the_far_side_said(admin: AdminHarness) -> None:
    async with HttpPeer([reply(b"taken"), reply(b"gone", status=410)]) as peer:
        assert peer._server is not None
        url = f"http://127.0.0.1:{peer._server.sockets[0].getsockname()[1]}/hook"
        made = await make(admin, kind="webhook", settings={"url": url}, disabled=True)
        said = answer(await admin.client.post(f"{PATH}/{made['id']}/test"))
        assert said == {"sent": True, "answer": "HTTP 200 taken"}
        assert b"this is a test" in peer.requests[0].body
        said = answer(await admin.client.post(f"{PATH}/{made['id']}/test"))
        assert said == {"sent": False, "answer": "HTTP 410 gone"}
    assert error(await admin.client.post(f"{PATH}/4711/test"), 404)["code"] == "not_found"


async def test_two_that_take_a_name_at_once(admin: AdminHarness) -> None:
    body = {"name": "ops", "kind": "slack", "settings": {"url": HOOK}}
    replies = await asyncio.gather(*(admin.client.post(PATH, json=body) for _ in range(3)))
    assert sorted(reply.status_code for reply in replies) == [201, 409, 409]


DEFAULTS = {
    "channel_ids": [],
    "failures": "FINAL",
    "also": [],
    "success_after_failure": False,
    "late_start_s": None,
    "long_run_s": None,
    "most_open_runs": None,
}


class TestJobs:
    async def test_a_job_says_what_its_people_are_told_of(self, admin: AdminHarness) -> None:
        channel = await make(admin)
        job = await make_job(admin)
        assert job["alarm_settings"] == DEFAULTS
        wanted = {"channel_ids": [channel["id"]], "failures": "EVERY", "also": ["killed"], "late_start_s": 60}
        path = f"/api/v1/jobs/{job['id']}"
        changed = answer(await admin.client.patch(path, json={"alarm_settings": wanted}))
        assert changed["alarm_settings"] == {**DEFAULTS, **wanted}
        assert answer(await admin.client.get(path)) == changed
        events = answer(await admin.client.get(f"{path}/events"))["items"]
        assert events[0]["details"]["after"]["alarm_settings"] == {**DEFAULTS, **wanted}
        # The channel may go: the job is told through the default ones, and can be edited.
        await admin.client.delete(f"{PATH}/{channel['id']}")
        answer(await admin.client.patch(path, json={"name": "renamed"}))

    @pytest.mark.parametrize(
        ("settings", "field"),
        [
            ({"channel_ids": [4711]}, "alarm_settings.channel_ids"),
            ({"channel_ids": ["1"]}, "alarm_settings.channel_ids[0]"),
            ({"failures": "SOMETIMES"}, "alarm_settings.failures"),
            ({"also": ["succeeded"]}, "alarm_settings.also[0]"),
            ({"late_start_s": 0}, "alarm_settings.late_start_s"),
            ({"long_run_s": 10**9}, "alarm_settings.long_run_s"),
            ({"most_open_runs": 0}, "alarm_settings.most_open_runs"),
            ({"colour": "red"}, "alarm_settings.colour"),
        ],
    )
    async def test_bad_settings_are_named(self, admin: AdminHarness, settings: Json, field: str) -> None:
        job = await make_job(admin)
        reply = await admin.client.patch(f"/api/v1/jobs/{job['id']}", json={"alarm_settings": settings})
        assert error(reply, 422)["field"] == field

    async def test_addresses_that_are_none_are_refused(self, admin: AdminHarness) -> None:
        job = await make_job(admin)
        path = f"/api/v1/jobs/{job['id']}"
        good = {"alarm_email": "lin@example.com, ops@example.com"}
        assert answer(await admin.client.patch(path, json=good))["alarm_email"] == good["alarm_email"]
        bad = {"alarm_email": "lin@example.com, nobody"}
        assert error(await admin.client.patch(path, json=bad), 422)["field"] == "alarm_email"
