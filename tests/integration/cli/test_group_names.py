"""Groups and alarm channels by their names, wherever an id would do."""

import json
import secrets
from typing import Any

import pytest

from jobwheel.cli.group_names import find_group
from jobwheel.cli.rest import Rest
from tests.integration.cli.conftest import Call

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]


@pytest.fixture
def group(rest: Rest) -> dict[str, Any]:
    made: dict[str, Any] = rest.post("/api/v1/groups", {"app_name": f"named-{secrets.token_hex(4)}", "title": "Named"})
    return made


@pytest.fixture
def job(rest: Rest, group: dict[str, Any]) -> dict[str, Any]:
    body = {"name": "settle", "schedule_type": "NONE", "handler": "work"}
    made: dict[str, Any] = rest.put(f"/api/v1/groups/{group['app_name']}/jobs/settle", body)["job"]
    return made


@pytest.fixture
def channel(rest: Rest) -> dict[str, Any]:
    body = {
        "name": f"on call {secrets.token_hex(4)}",
        "kind": "webhook",
        "settings": {"url": "http://127.0.0.1:9/alarm"},
    }
    made: dict[str, Any] = rest.post("/api/v1/alarm-channels", body)
    return made


def answer_of(call: Call, *arguments: object) -> Any:
    done = call(*arguments, "--json")
    assert done.code == 0, done
    return json.loads(done.out)


@pytest.mark.parametrize("way", ["id", "app_name"])
def test_a_group_by_id_and_by_app_name(signed_in: Call, group: dict[str, Any], job: dict[str, Any], way: str) -> None:
    name = group[way]
    listed = answer_of(signed_in, "jobs", "list", "--group", name)
    assert [each["id"] for each in listed["items"]] == [job["id"]]
    stopped = answer_of(signed_in, "jobs", "stop", "--group", name)
    assert [each["job_id"] for each in stopped["jobs"]] == [job["id"]]
    answer_of(signed_in, "reports", "daily", "--group", name)
    token = answer_of(signed_in, "tokens", "new", f"ci-{secrets.token_hex(4)}", "--group", name)
    assert token["group_id"] == group["id"]
    cleaned = answer_of(signed_in, "runs", "clean-up", "all", "--group", name)
    assert cleaned["group_id"] == group["id"]
    assert signed_in("groups", "token", "new", name).code == 0
    assert signed_in("groups", "token", "list", name).code == 0


def test_a_group_that_is_on_a_later_page(rest: Rest, group: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobwheel.cli.group_names._PAGE", 1)
    rest.post("/api/v1/groups", {"app_name": f"after-{secrets.token_hex(4)}", "title": "After"})
    assert find_group(rest, group["app_name"]) == group["id"]


@pytest.mark.parametrize("name", ["nobody", ""])
@pytest.mark.parametrize("command", [("jobs", "list"), ("jobs", "stop", "--all"), ("reports", "daily")])
def test_what_names_no_group_changes_nothing(
    signed_in: Call, rest: Rest, job: dict[str, Any], command: tuple[str, ...], name: str
) -> None:
    answer = signed_in(*command, "--group", name)
    assert (answer.code, answer.out) == (1, "")
    assert "is neither a group's id nor its app name; see them with jobwheel groups list" in answer.err
    assert rest.get(f"/api/v1/jobs/{job['id']}")["version"] == job["version"]


def test_the_channels_of_a_job_by_name(
    signed_in: Call, rest: Rest, job: dict[str, Any], channel: dict[str, Any]
) -> None:
    by_name = answer_of(signed_in, "jobs", "alarms", job["id"], "--channel", channel["name"])
    assert by_name["channel_ids"] == [channel["id"]]
    both = answer_of(signed_in, "jobs", "alarms", job["id"], "--channel", channel["id"], "--channel", channel["name"])
    assert both["channel_ids"] == [channel["id"]]
    assert answer_of(signed_in, "jobs", "alarms", job["id"], "--channel", "0")["channel_ids"] == []
    unknown = signed_in("jobs", "alarms", job["id"], "--channel", "nobody")
    assert unknown.code == 1
    assert "'nobody' is neither an alarm channel's id nor its name; there are " in unknown.err
    assert channel["name"] in unknown.err


def test_a_channel_is_changed_and_deleted_by_its_name(signed_in: Call, rest: Rest, channel: dict[str, Any]) -> None:
    changed = answer_of(signed_in, "alarms", "update", channel["name"], "--disable")
    assert (changed["id"], changed["disabled"]) == (channel["id"], True)
    assert signed_in("alarms", "delete", channel["name"]).out == f"channel {channel['name']} is deleted\n"
    assert channel["id"] not in {each["id"] for each in rest.get("/api/v1/alarm-channels")["items"]}
