"""`jobwheel alarms …` and `jobwheel jobs alarms` against a running admin."""

import json
import secrets
from pathlib import Path

import pytest

from jobwheel.cli.access import signed_in as rest_of
from tests.integration.cli.conftest import Call
from tests.support.http_peer import unused_port

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]


def test_channels_are_made_listed_tried_changed_and_deleted(signed_in: Call, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("SEC-7351\n")
    url = f"http://127.0.0.1:{unused_port()}/robot"
    made = signed_in("alarms", "create", "night", "dingtalk", "--set", f"url={url}", "--set", f"secret=@{secret}")
    assert made.code == 0, made.err
    assert "(night) is made" in made.out
    listed = signed_in("alarms", "list")
    assert "night" in listed.out
    assert "secret=***" in listed.out
    (channel,) = json.loads(signed_in("alarms", "list", "--json").out)["items"]
    tried = signed_in("alarms", "test", channel["id"])
    assert tried.code == 1
    # An admin asks no private address unless it is told to.
    assert tried.out.startswith("not sent: 127.0.0.1 leads to 127.0.0.1, which is no public address")
    changed = signed_in("alarms", "update", channel["id"], "--default", "--set", "secret=", "--json")
    assert json.loads(changed.out)["is_default"] is True
    assert "secret" not in json.loads(changed.out)["settings"]
    assert signed_in("alarms", "update", channel["id"]).code == 2
    wrong = signed_in("alarms", "create", "mail", "mail", "--set", "host=mail.example.com", "--set", "port=many")
    assert (wrong.code, wrong.err) == (1, "jobwheel: settings.port: is not a whole number\n")
    body = '{"summary": "{{ title }}"}'
    hook = signed_in("alarms", "create", "pager", "webhook", "--set", f"url={url}", "--set", f"body={body}", "--json")
    assert json.loads(hook.out)["settings"]["body"] == body
    for each in (channel, json.loads(hook.out)):
        assert signed_in("alarms", "delete", each["id"]).code == 0
    assert "there are no channels" in signed_in("alarms", "list").err


def test_a_job_says_what_is_told_of_it(signed_in: Call) -> None:
    with rest_of(None) as rest:
        group = rest.post("/api/v1/groups", {"app_name": f"cli-{secrets.token_hex(4)}", "title": "Command line"})
        body = {"group_id": group["id"], "name": "count", "schedule_type": "NONE", "handler": "count"}
        job = rest.post("/api/v1/jobs", body)
    shown = signed_in("jobs", "alarms", job["id"])
    assert "failures: FINAL" in shown.out
    assert "late_start_s: -" in shown.out
    options = ("--failures", "EVERY", "--late", "60", "--long", "0", "--open", "20", "--also", "killed", "--success")
    changed = json.loads(signed_in("jobs", "alarms", job["id"], *options, "--json").out)
    assert changed == {
        "channel_ids": [],
        "failures": "EVERY",
        "also": ["killed"],
        "success_after_failure": True,
        "late_start_s": 60,
        "long_run_s": None,
        "most_open_runs": 20,
    }
    refused = signed_in("jobs", "alarms", job["id"], "--channel", "4711")
    assert "there is no alarm channel 4711; there are none" in refused.err
