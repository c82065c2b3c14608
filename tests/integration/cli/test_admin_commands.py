"""login, jobs and runs against an admin process, with an executor in this one."""

import json
import re
import secrets
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobwheel import Executor, JobContext
from jobwheel.cli.access import signed_in as rest_of
from jobwheel.cli.rest import Rest
from tests.integration.cli.conftest import AdminProcess, Call, start_registered

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]


@pytest.fixture
def job(rest: Rest) -> dict[str, Any]:
    group = rest.post("/api/v1/groups", {"app_name": f"cli-{secrets.token_hex(4)}", "title": "Command line"})
    body = {
        "group_id": group["id"],
        "name": "[red]count[/red]",
        "author": "cli",
        "schedule_type": "CRON",
        "schedule_conf": "0 0 4 * * ?",
        "handler": "count",
    }
    made: dict[str, Any] = rest.post("/api/v1/jobs", body)
    return made


@pytest.fixture
def executor(rest: Rest, job: dict[str, Any], call: Call, admin: AdminProcess, tmp_path: Path) -> Iterator[Executor]:
    token = call("token", "show", "--data-dir", admin.data_dir).out.strip()
    app_name = rest.get(f"/api/v1/groups/{job['group_id']}")["app_name"]
    executor = Executor(app_name, admin.url, token, port=0, log_path=tmp_path / "logs", stop_deadline_s=5)

    @executor.job("count")
    def count(ctx: JobContext) -> str:
        ctx.log.info("counting to %s", ctx.parameter)
        return "counted"

    try:
        start_registered(executor, rest, job["group_id"])
        yield executor
    finally:
        executor.stop_in_background()


def test_login_keeps_a_session_that_only_the_user_can_read(call: Call, admin: AdminProcess, tmp_path: Path) -> None:
    answer = call("login", "--url", admin.url, "--username", "admin", "--stdin", stdin=f"{admin.password}\n")
    assert answer.code == 0
    assert f"signed in at {admin.url} as admin" in answer.err
    path = tmp_path / "config" / "jobwheel" / "session.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert admin.password not in path.read_text()
    assert call("jobs", "list").code == 0


def test_a_wrong_password_is_refused_and_nothing_kept(call: Call, admin: AdminProcess, tmp_path: Path) -> None:
    answer = call("login", "--url", admin.url, "-u", "someone", "--stdin", stdin="a wrong password\n")
    assert answer.code == 1
    assert "the user name or the password is wrong" in answer.err
    assert not (tmp_path / "config").exists()


def test_logout_ends_the_session_at_the_admin(signed_in: Call, admin: AdminProcess, rest: Rest) -> None:
    assert signed_in("logout").code == 0
    answer = signed_in("jobs", "list")
    assert answer.code == 1
    assert f"not signed in at {admin.url}" in answer.err
    with pytest.raises(Exception, match="not signed in"):
        rest.get("/api/v1/session")


def test_a_session_that_is_over_says_how_to_get_another(signed_in: Call, rest: Rest, admin: AdminProcess) -> None:
    rest.delete("/api/v1/session")
    answer = signed_in("runs", "list")
    assert (answer.code, answer.out) == (1, "")
    assert f"run `jobwheel login --url {admin.url}`" in answer.err
    assert signed_in("logout").code == 0


def test_lists_jobs_for_people_and_for_programs(signed_in: Call, job: dict[str, Any]) -> None:
    shown = signed_in("jobs", "list", "--name", job["name"], "--group", job["group_id"])
    assert shown.out.splitlines()[1].split()[:3] == [str(job["id"]), "stopped", "[red]count[/red]"]
    page = json.loads(signed_in("jobs", "list", "--json", "--group", job["group_id"]).out)
    assert [each["id"] for each in page["items"]] == [job["id"]]
    assert page["next"] is None


def test_pages(signed_in: Call, job: dict[str, Any], rest: Rest) -> None:
    for number in range(2):
        rest.post("/api/v1/jobs", {**_copy(job), "name": f"more {number}"})
    group = ("--group", job["group_id"])
    first = signed_in("jobs", "list", "--limit", 2, *group)
    assert len(first.out.splitlines()) == 3
    cursor = first.err.strip().removeprefix("there are more: --after ")
    second = signed_in("jobs", "list", "--limit", 2, "--after", cursor, *group)
    assert len(second.out.splitlines()) == 2
    assert second.err == ""


def test_starts_and_stops_a_job(signed_in: Call, job: dict[str, Any]) -> None:
    started = signed_in("jobs", "start", job["id"])
    assert (started.code, started.err) == (0, "")
    assert "is running, next run 20" in started.out
    stopped = json.loads(signed_in("jobs", "stop", job["id"], "--json").out)
    assert stopped["status"] == "stopped"


def test_runs_a_job_and_follows_its_log(signed_in: Call, job: dict[str, Any], executor: Executor) -> None:
    run = json.loads(signed_in("jobs", "run", job["id"], "--parameter", "seventeen", "--json").out)
    log = signed_in("runs", "log", run["id"], "--follow")
    assert log.code == 0
    lines = log.out.splitlines()
    assert "counting to seventeen" in log.out
    assert len(lines) == len(set(lines))
    assert log.err == f"run {run['id']}: succeeded\n"
    assert signed_in("runs", "log", run["id"]).out == log.out
    listed = json.loads(signed_in("runs", "list", "--job", job["id"], "--outcome", "succeeded", "--json").out)
    assert [each["id"] for each in listed["items"]] == [run["id"]]
    table = signed_in("runs", "list", "--job", job["id"]).out
    assert table.splitlines()[1].split()[:3] == [str(run["id"]), str(job["id"]), "MANUAL"]
    assert "counted" in table


def test_shows_a_run_and_how_far_it_is(signed_in: Call, job: dict[str, Any], executor: Executor) -> None:
    go_on = threading.Event()

    @executor.job("wait")
    def wait(ctx: JobContext) -> None:
        while not go_on.wait(0.1):
            ctx.progress(0.4, "four of ten\x1b[2J")

    signed_in("jobs", "list")
    with rest_of(None) as rest:
        made = rest.post("/api/v1/jobs", {**_copy(job), "name": "waits", "handler": "wait"})
        run_id = rest.post(f"/api/v1/jobs/{made['id']}/run")["id"]
        try:
            while not rest.get(f"/api/v1/runs/{run_id}")["progress"]:
                assert not go_on.wait(0.05)
            shown = signed_in("runs", "show", run_id).out
            assert re.search(r"^progress +40%, four of ten \[2J \(20", shown, re.MULTILINE), shown
            assert "accepted" in shown
            assert json.loads(signed_in("runs", "show", run_id, "--json").out)["progress"]["fraction"] == 0.4
        finally:
            go_on.set()
    signed_in("runs", "log", run_id, "--follow")
    shown = signed_in("runs", "show", run_id).out
    assert "succeeded" in shown
    assert "progress" not in shown


def test_kills_a_run_and_all_runs_of_a_job(signed_in: Call, job: dict[str, Any], executor: Executor) -> None:
    @executor.job("sleep")
    def sleep(ctx: JobContext) -> None:
        ctx.wait_cancelled(30)

    with rest_of(None) as rest:
        made = rest.post("/api/v1/jobs", {**_copy(job), "name": "sleeps", "handler": "sleep"})
        first, second, third = [rest.post(f"/api/v1/jobs/{made['id']}/run")["id"] for _ in range(3)]
        for run_id in (first, second, third):
            while rest.get(f"/api/v1/runs/{run_id}")["phase"] != "accepted":
                assert not threading.Event().wait(0.05)
        killed = signed_in("runs", "kill", first)
        assert (killed.code, killed.out) == (0, f"run {first}: its executor is told to end it\n")
        assert json.loads(signed_in("runs", "kill", second, "--json").out)["kill_asked_at"]
        signed_in("runs", "log", first, "--follow")
        assert "kill asked" in signed_in("runs", "show", first).out
        refused = signed_in("runs", "kill", first)
        assert (refused.code, "has ended already" in refused.err) == (1, True)
        assert signed_in("jobs", "kill-runs", made["id"], "--by-job").code == 0
        signed_in("runs", "log", third, "--follow")
        assert signed_in("jobs", "kill-runs", made["id"]).out == f"job {made['id']}: 0 runs are to end\n"


def test_runs_a_job_and_prints_its_log_at_once(signed_in: Call, job: dict[str, Any], executor: Executor) -> None:
    answer = signed_in("jobs", "run", job["id"], "-p", "nineteen", "--follow")
    assert answer.code == 0
    assert "counting to nineteen" in answer.out
    assert answer.err.endswith(": succeeded\n")
    both = signed_in("jobs", "run", job["id"], "--follow", "--json")
    assert (both.code, both.out) == (2, "")


def test_saves_and_prints_a_script(signed_in: Call, rest: Rest, job: dict[str, Any], tmp_path: Path) -> None:
    body = {"group_id": job["group_id"], "name": "tidy up", "schedule_type": "NONE", "glue_type": "GLUE_SHELL"}
    job_id = rest.post("/api/v1/jobs", body)["id"]
    assert signed_in("jobs", "script", job_id).out.startswith("#!/bin/bash\n")
    file = tmp_path / "tidy.sh"
    file.write_text("echo 账\n")
    answer = signed_in("jobs", "script", job_id, "--save", file, "--remark", "says one")
    assert (answer.code, answer.out) == (0, f"the script of job {job_id} is saved; it applies from the next run\n")
    file.write_text("echo two")
    assert signed_in("jobs", "script", job_id, "--save", file, "-m", "says two", "--json").code == 0
    assert signed_in("jobs", "script", job_id).out == "echo two"
    versions = rest.get(f"/api/v1/jobs/{job_id}/script/versions")["items"]
    assert [each["remark"] for each in versions] == ["says two", "says one", "a sample"]
    assert signed_in("jobs", "script", job_id, "--version", versions[1]["id"]).out == "echo 账\n"
    assert json.loads(signed_in("jobs", "script", job_id, "--json").out)["remark"] == "says two"


def test_a_script_that_cannot_be_saved_says_why(signed_in: Call, job: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "bad.sh"
    file.write_bytes(b"echo \xff")
    answer = signed_in("jobs", "script", job["id"], "--save", file, "--remark", "a change")
    assert answer.code == 2
    assert "is not UTF-8" in answer.err
    assert signed_in("jobs", "script", job["id"], "--save", file).code == 2
    assert "No such file" in signed_in("jobs", "script", job["id"], "--save", tmp_path / "no", "-m", "a change").err
    file.write_text("echo")
    answer = signed_in("jobs", "script", job["id"], "--save", file, "--remark", "a change")
    assert (answer.code, answer.err) == (1, f"jobwheel: there is no script of the job {job['id']}\n")


def test_a_run_that_nobody_takes_tells_why(signed_in: Call, job: dict[str, Any]) -> None:
    answer = signed_in("jobs", "run", job["id"])
    run_id = answer.out.removeprefix("run ").strip()
    log = signed_in("runs", "log", run_id, "--follow")
    assert log.err == f"run {run_id}: failed\n"
    assert log.out


def test_drains_an_executor_and_lets_it_go_on(signed_in: Call, job: dict[str, Any], executor: Executor) -> None:
    address, group_id = f"http://127.0.0.1:{executor.port}/", job["group_id"]

    def listed() -> list[list[str]]:
        rows = [line.split() for line in signed_in("groups", "list").out.splitlines()]
        return [row[2:4] for row in rows if row[0] == str(group_id)]

    assert listed() == [[address, "live"]]
    assert "running  queued  last beat" in signed_in("groups", "list").out
    drained = signed_in("groups", "drain", group_id, address)
    assert (drained.code, drained.err) == (0, "")
    assert drained.out.startswith(f"{address} of cli-")
    assert drained.out.endswith(" gets no new runs; those under way go on\n")
    assert listed() == [[address, "draining"]]
    assert json.loads(signed_in("groups", "list", "--json").out)["items"]
    group = json.loads(signed_in("groups", "undrain", group_id, address, "--json").out)
    assert [each["draining"] for each in group["live_addresses"]] == [False]
    assert listed() == [[address, "live"]]
    refused = signed_in("groups", "drain", group_id, "http://10.0.0.7/")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.endswith(f"; live: {address}\n")


def test_tells_whether_the_admin_reaches_an_executor(signed_in: Call, job: dict[str, Any], executor: Executor) -> None:
    address = f"http://127.0.0.1:{executor.port}/"
    alive = signed_in("groups", "probe", job["group_id"], address.rstrip("/"))
    assert (alive.code, alive.err) == (0, "")
    assert alive.out.startswith(f"{address} is alive (")
    executor.stop_in_background()
    gone = signed_in("groups", "probe", job["group_id"], address)
    assert gone.code == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("jobs", "run", 999_999), "there is no job 999999"),
        (("jobs", "start", 999_999), "there is no job 999999"),
        (("runs", "log", 999_999), "there is no run 999999"),
        (("runs", "show", 999_999), "there is no run 999999"),
        (("groups", "drain", 999_999, "http://10.0.0.7/"), "there is no group 999999"),
        (("jobs", "list", "--status", "odd"), "status: "),
        (("runs", "list", "--after", "x"), "after: "),
    ],
)
def test_what_the_admin_refuses_is_told_in_a_line(signed_in: Call, arguments: tuple[object, ...], words: str) -> None:
    answer = signed_in(*arguments)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith(f"jobwheel: {words}")
    assert answer.err.count("\n") == 1


def _copy(job: dict[str, Any]) -> dict[str, Any]:
    names = ("group_id", "author", "schedule_type", "schedule_conf", "handler")
    return {name: job[name] for name in names}


def test_reports_and_a_clean_up_of_what_ran(executor: Executor, job: dict[str, Any], rest: Rest, call: Call) -> None:
    assert call("jobs", "run", job["id"], "--follow").code == 0
    statistics = call("reports", "job", job["id"])
    assert (statistics.code, "1 succeeded" in statistics.out) == (0, True)
    assert json.loads(call("reports", "job", job["id"], "--json").out)["total"]["count"] == 1
    daily = call("reports", "daily", "--days", "1")
    assert (daily.code, "counted:" in daily.err) == (0, True)
    assert "succeeded" in call("jobs", "list", "--group", job["group_id"]).out
    wrong = call("runs", "clean-up", "some", "--job", job["id"])
    assert (wrong.code, "which" in wrong.err) == (1, True)
    assert call("runs", "clean-up").code == 2
    cleaned = call("runs", "clean-up", "all", "--job", job["id"], "--follow")
    assert re.fullmatch(r"clean-up \d+ is done: 1 of about 1 runs are removed\n", cleaned.out)
    assert rest.get("/api/v1/runs", {"job_id": job["id"]})["items"] == []
    clean_up_id = cleaned.out.split()[1]
    assert call("runs", "clean-up", "--show", clean_up_id).out == cleaned.out
    assert call("runs", "clean-up", "--cancel", clean_up_id).out == cleaned.out
