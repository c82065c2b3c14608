"""Jobs as files, against an admin process."""

import json
import secrets
from pathlib import Path
from typing import Any

import pytest

from jobwheel.cli.rest import Rest
from tests.integration.cli.conftest import Call

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]


@pytest.fixture
def app_name() -> str:
    return f"file-{secrets.token_hex(4)}"


@pytest.fixture
def file(tmp_path: Path, app_name: str) -> Path:
    path = tmp_path / "jobs.yaml"
    path.write_text(f"""\
groups:
  - app_name: {app_name}
    title: Files
jobs:
  - app_name: {app_name}
    key: nightly
    name: settle accounts
    schedule_type: CRON
    schedule_conf: 0 0 2 * * ?
    handler: settle
    status: running
  - app_name: {app_name}
    key: tidy
    name: tidy up
    schedule_type: NONE
    glue_type: GLUE_SHELL
    glue_source: |
      echo one
      echo two
""")
    return path


def jobs_of(rest: Rest, app_name: str) -> list[dict[str, Any]]:
    groups = [each for each in rest.get("/api/v1/groups", {"limit": 500})["items"] if each["app_name"] == app_name]
    return [] if not groups else list(rest.get("/api/v1/jobs", {"group_id": groups[0]["id"]})["items"])


def test_plan_apply_and_export(signed_in: Call, rest: Rest, app_name: str, file: Path, tmp_path: Path) -> None:
    planned = signed_in("jobs", "plan", file)
    assert planned.code == 2, planned.err
    lines = planned.out.splitlines()
    assert lines[:2] == [f"+ group {app_name}", f"+ {app_name}/nightly create"]
    assert "    schedule_conf: 0 0 2 * * ?" in lines
    assert lines[-2] == "2 to create, 0 to change, 0 unchanged"
    assert jobs_of(rest, app_name) == []

    refused = signed_in("jobs", "apply", file)
    assert refused.code == 1
    assert jobs_of(rest, app_name) == []
    fingerprint = lines[-1].removeprefix("fingerprint ")
    wrong = signed_in("jobs", "apply", file, "--yes", "--fingerprint", "0" * 64)
    assert (wrong.code, jobs_of(rest, app_name)) == (1, [])
    assert "plan again" in wrong.err
    applied = signed_in("jobs", "apply", file, "--yes", "--fingerprint", fingerprint)
    assert (applied.code, applied.err) == (0, "applied\n")
    assert [job["status"] for job in jobs_of(rest, app_name)] == ["running", "stopped"]

    assert signed_in("jobs", "plan", file).code == 0
    assert signed_in("jobs", "apply", file).code == 0
    exported = tmp_path / "exported.yaml"
    assert (
        signed_in("jobs", "export", "--group", app_name, "-o", exported).err
        == f"2 jobs of 1 groups are in {exported}\n"
    )
    assert "    glue_source: |\n      echo one\n      echo two\n" in exported.read_text()
    assert signed_in("jobs", "plan", exported).code == 0
    as_json = signed_in("jobs", "export", "--group", app_name, "--format", "json").out
    assert [each["key"] for each in json.loads(as_json)["jobs"]] == ["nightly", "tidy"]


def test_a_change_is_shown_and_asked_for(signed_in: Call, rest: Rest, app_name: str, file: Path) -> None:
    signed_in("jobs", "apply", file, "--yes")
    text = file.read_text().replace("0 0 2 * * ?", "0 30 2 * * ?").replace("echo two", "echo 2")
    file.write_text(text)
    planned = signed_in("jobs", "plan", file)
    assert "    schedule_conf: 0 0 2 * * ? → 0 30 2 * * ?\n" in planned.out
    assert "      -echo two\n      +echo 2\n" in planned.out
    no = signed_in("jobs", "apply", file, stdin="n\n")
    assert (no.code, jobs_of(rest, app_name)[0]["schedule_conf"]) == (1, "0 0 2 * * ?")
    assert signed_in("jobs", "apply", file, stdin="y\n").code == 0
    assert jobs_of(rest, app_name)[0]["schedule_conf"] == "0 30 2 * * ?"

    file.write_text(text.partition("  - app_name: " + app_name + "\n    key: tidy")[0])
    kept = signed_in("jobs", "plan", file)
    assert (kept.code, f"? {app_name}/tidy is not in the file, and stays\n" in kept.out) == (0, True)
    gone = signed_in("jobs", "apply", file, "--delete-missing", "--yes", "--json")
    assert [each["action"] for each in json.loads(gone.out)["jobs"]] == ["unchanged", "delete"]
    assert [job["key"] for job in jobs_of(rest, app_name)] == ["nightly"]


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("0 0 2 * * ?", "0 61 2 * * ?"), 9, "/nightly): schedule_conf: minute: 61 is not in 0-59"),
        (("name: tidy up", "odd: 1"), 12, "name"),
        (("key: tidy", "key: nightly"), 13, "is jobs[0] already"),
        (("handler: settle", "timeout_s: soon"), 10, "timeout_s: is not a whole number"),
        (("key: tidy", "  key: ["), 13, "is not YAML"),
        (("status: running", "alarm_settings:\n      channels:\n        - pager"), 13, "no alarm channel 'pager'"),
        (("groups:", "delete_missing: true\ngroups:"), 1, "delete_missing is an option"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    signed_in: Call, rest: Rest, app_name: str, file: Path, change: tuple[str, str], line: int, words: str
) -> None:
    file.write_text(file.read_text().replace(*change))
    for command in ("plan", "apply"):
        answer = signed_in("jobs", command, file, *(["--yes"] if command == "apply" else []))
        assert (answer.code, answer.out) == (1, "")
        assert answer.err.startswith(f"jobwheel: {file}:"), answer.err
        assert words in answer.err
        assert answer.err.startswith(f"jobwheel: {file}:{line}:"), answer.err
    assert jobs_of(rest, app_name) == []


def test_jobs_without_a_key_get_one_when_that_is_wanted(signed_in: Call, rest: Rest, app_name: str) -> None:
    group = rest.post("/api/v1/groups", {"app_name": app_name, "title": "T"})
    body = {"group_id": group["id"], "name": "old one", "schedule_type": "NONE", "handler": "h"}
    job = rest.post("/api/v1/jobs", body)
    refused = signed_in("jobs", "export", "--group", app_name)
    assert (refused.code, refused.out) == (1, "")
    assert f"1 job has no key: {job['id']} (old one)" in refused.err
    exported = signed_in("jobs", "export", "--group", app_name, "--assign-keys")
    assert exported.err == f"job {job['id']} (old one) has the key job-{job['id']} now\n"
    assert f"key: job-{job['id']}\n" in exported.out
    assert signed_in("jobs", "export", "--format", "xml").code == 2
