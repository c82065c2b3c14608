"""Jobs driven from a pipeline: run and followed, many at once, past times, repetitions."""

import json
import os
import secrets
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobwheel import Executor, JobContext
from jobwheel.cli import follow
from jobwheel.cli.rest import Rest
from tests.integration.cli.conftest import AdminProcess, Call, start_registered

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]


@pytest.fixture
def group(rest: Rest) -> dict[str, Any]:
    app_name = f"drive-{secrets.token_hex(4)}"
    made: dict[str, Any] = rest.post("/api/v1/groups", {"app_name": app_name, "title": "Driven"})
    return made


@pytest.fixture
def executor(rest: Rest, group: dict[str, Any], call: Call, admin: AdminProcess, tmp_path: Path) -> Iterator[Executor]:
    token = call("token", "show", "--data-dir", admin.data_dir).out.strip()
    executor = Executor(group["app_name"], admin.url, token, port=0, log_path=tmp_path / "logs", stop_deadline_s=5)

    @executor.job("work")
    def work(ctx: JobContext) -> None:
        ctx.log.info("working on %s", ctx.parameter)
        if ctx.parameter == "bad":
            raise ValueError(ctx.parameter)

    try:
        start_registered(executor, rest, group["id"])
        yield executor
    finally:
        executor.stop_in_background()


def put(rest: Rest, group: dict[str, Any], key: str, **fields: object) -> dict[str, Any]:
    body = {"name": f"{key} of {group['app_name']}", "schedule_type": "NONE", "handler": "work", **fields}
    made: dict[str, Any] = rest.put(f"/api/v1/groups/{group['app_name']}/jobs/{key}", body)["job"]
    return made


def test_a_run_is_followed_and_ends_the_command_as_it_ends(
    signed_in: Call, rest: Rest, group: dict[str, Any], executor: Executor
) -> None:
    job = put(rest, group, "settle", tags=["a"])
    for name in (job["id"], f"{group['app_name']}/settle", job["name"]):
        good = signed_in("run", name, "--parameter", "good", "--follow")
        assert (good.code, "working on good" in good.out) == (0, True), good
        assert good.err.endswith(": succeeded\n")
    bad = signed_in("run", job["id"], "-p", "bad", "-f")
    assert bad.code == 10
    assert "ValueError" in bad.out
    assert bad.err.endswith(": failed\n")
    only = signed_in("run", job["id"], "--json")
    assert json.loads(only.out)["job_id"] == job["id"]
    assert signed_in("runs", "log", json.loads(only.out)["id"], "--follow").code == 0


def test_who_stops_following_does_not_stop_the_run(
    signed_in: Call, rest: Rest, group: dict[str, Any], executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, shown = threading.Event(), threading.Event()

    @executor.job("wait")
    def wait(ctx: JobContext) -> None:
        go_on.wait(20)

    def show(text: str) -> None:
        write(text)
        shown.set()

    def interrupt() -> None:
        # Not before the command follows: the run begins while its caller still waits to hear of it.
        if shown.wait(20):
            os.kill(os.getpid(), signal.SIGINT)

    write = follow._write
    monkeypatch.setattr(follow, "_write", show)
    job = put(rest, group, "waits", handler="wait")
    stopper = threading.Thread(target=interrupt)
    stopper.start()
    answer = signed_in("run", job["id"], "--follow")
    stopper.join()
    go_on.set()
    assert answer.code == 130
    assert " goes on; read on: jobwheel runs log " in answer.err
    run = rest.get("/api/v1/runs", {"job_id": job["id"]})["items"][0]
    signed_in("runs", "log", run["id"], "--follow")
    assert rest.get(f"/api/v1/runs/{run['id']}")["outcome"] == "succeeded"


def test_what_names_no_job(signed_in: Call, rest: Rest, group: dict[str, Any]) -> None:
    twice = [put(rest, group, key, name="two alike")["id"] for key in ("a", "b")]
    for name, words in {
        "999999": "there is no job 999999",
        "nobody/settle": "is neither a job's id",
        "no such name": "is neither a job's id",
        "two alike": f"several jobs; give the id of one of them: {twice[0]}, {twice[1]}",
    }.items():
        answer = signed_in("run", name)
        assert (answer.code, answer.out) == (1, "")
        assert words in answer.err


def test_many_jobs_at_once(signed_in: Call, rest: Rest, group: dict[str, Any]) -> None:
    hourly = {"schedule_type": "CRON", "schedule_conf": "0 0 * * * ?"}
    tag = f"tag-{group['app_name']}"
    ids = [put(rest, group, key, **hourly, tags=[tag])["id"] for key in ("a", "b")]
    never = put(rest, group, "c")["id"]
    assert signed_in("jobs", "start", "--tag", tag, "--dry-run").out.count("would") == 2
    started = signed_in("jobs", "start", "--group", group["id"])
    assert started.code == 1
    assert [line.split()[0] for line in started.out.splitlines()[1:]] == [*map(str, ids), str(never)]
    assert "has no next time" in started.out
    listed = json.loads(signed_in("jobs", "list", "--tag", tag, "--json").out)["items"]
    assert [job["status"] for job in listed] == ["running", "running"]
    stopped = json.loads(signed_in("jobs", "stop", *ids, "--json").out)
    assert [each["result"] for each in stopped["jobs"]] == ["done", "done"]
    ran = json.loads(signed_in("jobs", "run", "--tag", tag, "-p", "x", "--json").out)
    assert all(each["run_id"] for each in ran["jobs"])
    assert signed_in("jobs", "start").code == 2
    assert signed_in("jobs", "run", *ids, "--follow").code == 2


def test_jobs_are_named_as_in_files_by_every_command(signed_in: Call, rest: Rest, group: dict[str, Any]) -> None:
    hourly = {"schedule_type": "CRON", "schedule_conf": "0 0 * * * ?"}
    ids = [put(rest, group, key, **hourly)["id"] for key in ("a", "b")]
    first, second = (f"{group['app_name']}/{key}" for key in ("a", "b"))
    assert signed_in("jobs", "start", first).out.startswith(f"job {ids[0]} (a of ")
    stopped = json.loads(signed_in("jobs", "stop", first, second, ids[0], "--json").out)
    assert [each["job_id"] for each in stopped["jobs"]] == ids
    ran = json.loads(signed_in("jobs", "run", second, "--json").out)
    listed = json.loads(signed_in("runs", "list", "--job", second, "--json").out)["items"]
    assert [each["id"] for each in listed] == [ran["id"]]
    assert signed_in("jobs", "kill-runs", first).out == f"job {ids[0]}: 0 runs are to end\n"
    assert signed_in("jobs", "alarms", first, "--failures", "NONE").out.startswith(f"job {ids[0]} (")
    assert rest.get(f"/api/v1/jobs/{ids[0]}")["alarm_settings"]["failures"] == "NONE"
    assert f"there is no script of the job {ids[0]}" in signed_in("jobs", "script", first).err
    assert signed_in("reports", "job", first).code == 0
    assert signed_in("runs", "rerun", "--job", first).err == "there are no such runs\n"
    cleaned = json.loads(signed_in("runs", "clean-up", "all", "--job", first, "--json").out)
    assert cleaned["job_id"] == ids[0]
    for command in (("start",), ("run",), ("stop", second), ("script",), ("kill-runs",), ("alarms",)):
        refused = signed_in("jobs", *command, "nobody/a")
        assert (refused.code, refused.out) == (1, "")
        assert "'nobody/a' is neither a job's id" in refused.err


def test_past_times_and_repetitions(signed_in: Call, rest: Rest, group: dict[str, Any]) -> None:
    job = put(rest, group, "hourly", schedule_type="CRON", schedule_conf="0 0 * * * ?", time_zone="UTC")
    name = f"{group['app_name']}/hourly"
    times = ("--from", "2026-01-01T00:00:00Z", "--until", "2026-01-01T03:00:00Z", "--interval", 3600)
    told = signed_in("jobs", "backfill", name, *times, "--dry-run")
    assert told.out.startswith("3 runs, planned from 2026-01-01 ")
    assert signed_in("jobs", "backfill", name, *times, stdin="n\n").code == 1
    assert rest.get("/api/v1/runs", {"job_id": job["id"]})["items"] == []
    made = signed_in("jobs", "backfill", name, *times, "--yes")
    assert (made.code, made.err) == (0, "3 runs are made\n")
    # The first one flies at once, and nobody is there to take it.
    assert signed_in("jobs", "backfill", name, "--cancel").out in ("2 runs are removed\n", "3 runs are removed\n")
    again = signed_in("jobs", "backfill", name, *times, "--only-missing", "--json", "--dry-run")
    assert json.loads(again.out)["count"] >= 2
    assert signed_in("jobs", "backfill", name, "--from", "2026-01-01T00:00:00Z").code == 2

    run_id = json.loads(signed_in("run", job["id"], "-p", "x", "--json").out)["id"]
    assert signed_in("runs", "log", run_id, "--follow").err == f"run {run_id}: failed\n"
    told = signed_in("runs", "rerun", run_id, "--dry-run")
    assert told.out.splitlines()[1].split()[:2] == [str(run_id), str(job["id"])]
    made = signed_in("runs", "rerun", "--job", job["id"], "--outcome", "failed", "--yes", "--json")
    runs = {each["repeats"]: each["run_id"] for each in json.loads(made.out)["runs"]}
    assert rest.get(f"/api/v1/runs/{runs[run_id]}")["parameter"] == "x"
    assert signed_in("runs", "rerun", "--yes").code == 2
    nothing = signed_in("runs", "rerun", "--job", job["id"], "--outcome", "killed")
    assert (nothing.code, nothing.err) == (0, "there are no such runs\n")
