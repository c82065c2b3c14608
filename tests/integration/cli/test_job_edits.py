"""`jobwheel jobs create`, `set`, `show`, `events` and `delete` against a running admin."""

import json
import secrets

import pytest

from jobwheel.cli.access import signed_in as rest_of
from tests.integration.cli.conftest import Call

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]


@pytest.fixture
def app_name(signed_in: Call) -> str:
    app_name = f"cli-{secrets.token_hex(4)}"
    with rest_of(None) as rest:
        rest.post("/api/v1/groups", {"app_name": app_name, "title": "Command line"})
    return app_name


def test_a_job_is_made_changed_shown_and_deleted(signed_in: Call, app_name: str) -> None:
    fields = ("handler=count", "key=count", "schedule_type=CRON", "schedule_conf=0 0 2 * * ?", "running=true")
    made = signed_in("jobs", "create", app_name, "Count words", *fields)
    assert made.code == 0, made.err
    assert "(Count words) is made; it is running, next run " in made.out
    job = f"{app_name}/count"
    changes = ("retry_count=3", "retry_backoff=DOUBLING", "retention_days=7", "parameter=5", "tags=night")
    changed = signed_in("jobs", "set", job, *changes)
    assert "is changed (retry_count, retry_backoff, retention_days, parameter, tags); it is running" in changed.out
    assert "was so already" in signed_in("jobs", "set", job, "retry_count=3").out
    shown = json.loads(signed_in("jobs", "show", job, "--json").out)
    assert (shown["retry_count"], shown["retention_days"], shown["parameter"]) == (3, 7, "5")
    assert "retention_days      7" in signed_in("jobs", "show", job).out
    events = signed_in("jobs", "events", job).out.splitlines()
    assert "job.updated" in events[1]
    assert "job.created" in events[2]
    deleted = signed_in("jobs", "delete", job, "--yes")
    assert deleted.out.endswith("(Count words) is deleted\n")
    assert signed_in("jobs", "show", job).code == 1


def test_what_is_wrong_is_told_and_changes_nothing(signed_in: Call, app_name: str) -> None:
    made = json.loads(signed_in("jobs", "create", app_name, "tidy", "handler=tidy", "--json").out)
    wrong = signed_in("jobs", "set", made["id"], "parameter=new", "retry_count=-2")
    assert (wrong.code, wrong.err) == (1, "jobwheel: retry_count: -2 is not from 0 (none) to 1000\n")
    unknown = signed_in("jobs", "set", made["id"], "retry_cont=2")
    assert (unknown.code, unknown.err) == (1, "jobwheel: retry_cont: is not known here\n")
    stopped = signed_in("jobs", "set", made["id"], "running=false")
    assert stopped.code == 2
    assert "jobwheel jobs stop" in stopped.err
    assert json.loads(signed_in("jobs", "show", made["id"], "--json").out) == made
    nowhere = signed_in("jobs", "create", "nowhere", "tidy")
    assert (nowhere.code, nowhere.err.startswith("jobwheel: 'nowhere' is neither")) == (1, True)
