"""`jobwheel db hand-back`, on a database that an admin has worked with."""

import asyncio
import dataclasses
import json
from pathlib import Path

import pytest

from jobwheel.admin.build import build_admin
from jobwheel.admin.settings import Settings, load_settings
from jobwheel.kernel.clock import SystemClock
from tests.integration.cli.conftest import Call
from tests.support.run_servers import Servers
from tests.support.servers import SERVER_KINDS

JOB = {
    "name": "settle accounts",
    "schedule_type": "FIX_DELAY",
    "schedule_conf": "60",
    "handler": "settle",
    "key": "settle",
}


def make(settings: Settings, **fields: object) -> int:
    """An installation with one job."""

    async def run() -> int:
        admin = await build_admin(settings, SystemClock())
        try:
            group = await admin.services.groups.create({"app_name": "orders", "title": "Orders"}, actor="test")
            given = {**JOB, "group_id": group.group.id, **fields}
            return (await admin.services.jobs.create(given, running=False, actor="test")).id
        finally:
            await admin.database.stop()

    return asyncio.run(run())


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("JOBWHEEL_DATA_DIR", str(tmp_path / "data"))
    return load_settings({"JOBWHEEL_DATA_DIR": str(tmp_path / "data")}, {}).settings


def test_an_sqlite_file_is_told_of_and_never_handed_back(call: Call, settings: Settings) -> None:
    job_id = make(settings)
    for options in (("--check",), ("--yes", "--accept-losses")):
        answer = call("db", "hand-back", *options)
        assert answer.code == 1
        assert "can use an SQLite file" in answer.err
        assert f"job {job_id} (settle accounts)" in answer.out
        assert "knows no FIX_DELAY, and stops the job" in answer.out


@pytest.mark.parametrize("kind", SERVER_KINDS)
def test_losses_are_told_and_must_be_accepted(call: Call, settings: Settings, kind: str, servers: Servers) -> None:
    url = servers.make_database(kind, "jobwheel_hand_back")
    job_id = make(dataclasses.replace(settings, database_url=url))
    on_it = ("--database-url", url)
    refused = call("db", "hand-back", "--yes", *on_it)
    assert refused.code == 1
    assert "1 things, marked with !, would be lost" in refused.err
    told = call("db", "hand-back", "--check", "--accept-losses", "--json", *on_it)
    assert (told.code, told.err) == (0, "it can be handed back\n")
    (job,) = json.loads(told.out)["jobs"]
    assert (job["job_id"], [loss["what"] for loss in job["losses"]]) == (job_id, ["schedule_type", "key"])
    assert call("db", "hand-back", "--accept-losses", *on_it, stdin="n\n").code == 1
    done = call("db", "hand-back", "--accept-losses", "--yes", *on_it)
    assert done.code == 0, done.err
    assert "handed back: 0 runs were not sent, 0 are left to the other admin" in done.err
