"""Tokens of groups and of programs at the command line, against an admin process, and an executor that has one."""

import json
import secrets
from pathlib import Path
from typing import Any

import pytest

from jobwheel import Executor, JobContext
from jobwheel.cli.rest import Rest
from tests.integration.cli.conftest import AdminProcess, Call, start_registered

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]


@pytest.fixture
def group(rest: Rest) -> dict[str, Any]:
    made: dict[str, Any] = rest.post("/api/v1/groups", {"app_name": f"cli-{secrets.token_hex(4)}", "title": "Tokens"})
    return made


@pytest.fixture
def job(rest: Rest, group: dict[str, Any]) -> int:
    body = {"group_id": group["id"], "name": "count", "schedule_type": "NONE", "handler": "count"}
    return int(rest.post("/api/v1/jobs", body)["id"])


def run_once(
    admin: AdminProcess, rest: Rest, group: dict[str, Any], tokens: str, call: Call, job: int, folder: Path
) -> str:
    """What a run prints that an executor with these tokens has run, and reported."""
    executor = Executor(group["app_name"], admin.url, tokens, port=0, log_path=folder, stop_deadline_s=5)

    @executor.job("count")
    def count(ctx: JobContext) -> str:
        ctx.log.info("counting")
        return "counted"

    try:
        start_registered(executor, rest, group["id"])
        return call("jobs", "run", job, "--follow").out
    finally:
        executor.stop_in_background()


def test_an_executor_that_has_its_groups_token_alone(
    signed_in: Call, rest: Rest, group: dict[str, Any], job: int, admin: AdminProcess, tmp_path: Path
) -> None:
    made = signed_in("groups", "token", "new", group["id"])
    token = made.out.strip()
    assert token.startswith("jwg_")
    assert "this once only" in made.err
    # Registered, run, read through the executor's API, and reported: each with the group's token.
    assert "counting" in run_once(admin, rest, group, token, signed_in, job, tmp_path / "one")
    rotated = json.loads(signed_in("groups", "token", "rotate", group["id"], "--overlap", 600, "--json").out)
    both = f"{rotated['token']},{token}"
    assert "counting" in run_once(admin, rest, group, both, signed_in, job, tmp_path / "two")
    shown = signed_in("groups", "token", "list", group["id"])
    assert f"***{rotated['token'][-4:]}" in shown.out
    assert rotated["token"] not in shown.out
    assert signed_in("groups", "token", "revoke", group["id"], 1).code == 0
    assert [each["id"] for each in rest.get(f"/api/v1/groups/{group['id']}/tokens")["items"]] == [rotated["id"]]
    outcomes = [each["outcome"] for each in rest.get("/api/v1/runs", {"job_id": job})["items"]]
    assert outcomes == ["succeeded", "succeeded"]


def test_a_token_instead_of_a_session(
    signed_in: Call, group: dict[str, Any], job: int, admin: AdminProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = signed_in("tokens", "new", "ci", "--group", group["id"])
    assert signed_in("logout").code == 0
    monkeypatch.setenv("JOBWHEEL_TOKEN", made.out.strip())
    listed = signed_in("jobs", "list", "--json", "--url", admin.url)
    assert [each["id"] for each in json.loads(listed.out)["items"]] == [job]
    refused = signed_in("jobs", "start", job, "--url", admin.url)
    assert (refused.code, refused.out) == (1, "")
    assert "may not change anything" in refused.err
    for wrong in ("jwa_wrong", "jwa_ä"):
        monkeypatch.setenv("JOBWHEEL_TOKEN", wrong)
        assert "does not know the token in JOBWHEEL_TOKEN" in signed_in("jobs", "list", "--url", admin.url).err


def test_tokens_of_programs_are_listed_and_revoked(signed_in: Call) -> None:
    made = json.loads(signed_in("tokens", "new", "nightly", "--access", "write", "--json").out)
    shown = signed_in("tokens", "list")
    assert "nightly" in shown.out
    assert made["token"] not in shown.out
    assert signed_in("tokens", "revoke", made["id"]).code == 0
    assert "nightly" not in signed_in("tokens", "list").out
    again = signed_in("tokens", "revoke", made["id"])
    assert (again.code, again.err) == (1, f"jobwheel: there is no API token {made['id']}\n")
