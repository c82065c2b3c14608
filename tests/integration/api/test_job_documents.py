"""Documents of jobs: exported, planned, applied, all or nothing."""

from typing import Any

import pytest

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.services import job_input
from jobwheel.admin.services.errors import InvalidFieldError
from jobwheel.admin.services.jobs import Jobs
from jobwheel.admin.store.tables import job_info
from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import EVERY_5_S, Json, answer, error, event_kinds, make_group, make_job


def entry(key: str, /, **fields: object) -> Json:
    return {"app_name": "orders", "key": key, "name": key, "handler": "settle", **EVERY_5_S, **fields}


def document(*jobs: Json, **fields: object) -> Json:
    return {"groups": [{"app_name": "orders", "title": "Orders"}], "jobs": list(jobs), **fields}


async def plan(admin: AdminHarness, body: Json) -> Json:
    return answer(await admin.client.post("/api/v1/jobs/plan", json=body))


async def apply(admin: AdminHarness, body: Json) -> Json:
    return answer(await admin.client.post("/api/v1/jobs/apply", json=body))


async def export(admin: AdminHarness, *app_names: str) -> Json:
    return answer(await admin.client.get("/api/v1/jobs/export", params={"app_name": list(app_names)}))


async def stored(admin: AdminHarness) -> list[Json]:
    items: list[Json] = answer(await admin.client.get("/api/v1/jobs"))["items"]
    return items


def actions(changes: Json) -> dict[str, str]:
    return {each["key"]: each["action"] for each in changes["jobs"]}


@pytest.fixture
def children_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def children(field: str, value: Any) -> tuple[JobId, ...]:
        return tuple(JobId(each) for each in value)

    monkeypatch.setitem(job_input._READERS, "child_job_ids", children)


async def test_a_plan_shows_and_changes_nothing_and_apply_does_what_it_showed(admin: AdminHarness) -> None:
    body = document(entry("a", status="running"), entry("b", timeout_s=9))
    planned = await plan(admin, body)
    assert planned["new_groups"] == ["orders"]
    assert actions(planned) == {"a": "create", "b": "create"}
    assert {"field": "timeout_s", "before": None, "after": 9} in planned["jobs"][1]["fields"]
    assert await stored(admin) == []
    assert answer(await admin.client.get("/api/v1/groups"))["items"] == []
    applied = await apply(admin, {**body, "fingerprint": planned["fingerprint"]})
    assert applied == planned
    assert [(job["key"], job["status"], job["timeout_s"]) for job in await stored(admin)] == [
        ("a", "running", 0),
        ("b", "stopped", 9),
    ]
    assert admin.scheduler.wakes == 1
    assert actions(await plan(admin, body)) == {"a": "unchanged", "b": "unchanged"}
    await apply(admin, body)
    assert admin.scheduler.wakes == 1


async def test_a_change_is_shown_field_by_field(admin: AdminHarness) -> None:
    await apply(admin, document(entry("a", parameter="old", tags=["x"]), entry("b"), entry("c")))
    body = document(entry("a", parameter="new", status="running"), entry("b"))
    planned = await plan(admin, body)
    assert actions(planned) == {"a": "change", "b": "unchanged", "c": "missing"}
    assert planned["jobs"][0]["fields"] == [
        {"field": "parameter", "before": "old", "after": "new"},
        {"field": "status", "before": "stopped", "after": "running"},
        {"field": "tags", "before": ["x"], "after": None},
    ]
    before = await stored(admin)
    assert [job["parameter"] for job in before] == ["old", "", ""]
    await apply(admin, body)
    after = await stored(admin)
    assert [job["parameter"] for job in after] == ["new", "", ""]
    assert after[1:] == before[1:]
    assert await event_kinds(admin, before[0]["id"]) == ["job.created", "job.updated", "job.started"]
    assert await event_kinds(admin, before[1]["id"]) == ["job.created"]


async def test_channels_of_alarms_go_by_their_names(admin: AdminHarness) -> None:
    """Their ids differ from one installation to the next."""
    made = {}
    for name in ("gone", "ops", "Ops", "7"):
        body = {"name": name, "kind": "slack", "settings": {"url": "https://hooks.example.com/x"}}
        made[name] = answer(await admin.client.post("/api/v1/alarm-channels", json=body), 201)["id"]
    wanted: Json = {"channels": ["Ops", "7", "gone"], "late_start_s": 60}
    body = document(entry("a", alarm_settings=wanted), entry("b"))
    planned = await plan(admin, body)
    shown = next(each for each in planned["jobs"][0]["fields"] if each["field"] == "alarm_settings")
    unset = {"long_run_s": None, "most_open_runs": None}
    rules: Json = {"failures": "FINAL", "also": [], "success_after_failure": False, **unset}
    assert shown["after"] == {**rules, **wanted}
    await apply(admin, body)
    settings = [job["alarm_settings"] for job in await stored(admin)]
    assert settings[0]["channel_ids"] == [made[name] for name in wanted["channels"]]
    assert settings[1]["channel_ids"] == []
    exported = await export(admin)
    assert [job.get("alarm_settings") for job in exported["jobs"]] == [{**rules, **wanted}, None]
    assert actions(await plan(admin, exported)) == {"a": "unchanged", "b": "unchanged"}
    # One that is gone has no name, and its going is no change of the job.
    await admin.client.delete(f"/api/v1/alarm-channels/{made['gone']}")
    exported = await export(admin)
    assert exported["jobs"][0]["alarm_settings"]["channels"] == ["Ops", "7"]
    assert actions(await plan(admin, exported)) == {"a": "unchanged", "b": "unchanged"}
    exported["jobs"][0]["alarm_settings"]["channels"] = ["7", "ops"]
    planned = await plan(admin, exported)
    assert [each["field"] for each in planned["jobs"][0]["fields"]] == ["alarm_settings"]
    path = "/api/v1/groups/orders/jobs/a"
    fields = {name: value for name, value in exported["jobs"][0].items() if name not in ("app_name", "key")}
    put = answer(await admin.client.put(path, json=fields))
    assert put["job"]["alarm_settings"]["channel_ids"] == [made["7"], made["ops"]]
    assert put["fields"][0]["after"]["channels"] == ["7", "ops"]


@pytest.mark.parametrize(
    ("settings", "field", "words"),
    [
        ({"channels": ["ops", "OPS"]}, "channels[1]", "there is no alarm channel 'OPS'; there are 'ops'"),
        ({"channels": ["1"]}, "channels[0]", "there is no alarm channel '1'; there are 'ops'"),
        ({"channels": [1]}, "channels[0]", ""),
        ({"channels": ["ops"] * 21}, "channels", ""),
        ({"channel_ids": [1]}, "channel_ids", ""),
    ],
)
async def test_a_channel_that_is_not_there_is_named(
    admin: AdminHarness, settings: Json, field: str, words: str
) -> None:
    body = {"name": "ops", "kind": "slack", "settings": {"url": "https://hooks.example.com/x"}}
    answer(await admin.client.post("/api/v1/alarm-channels", json=body), 201)
    wanted = document(entry("a"), entry("b", alarm_settings=settings))
    for route in ("plan", "apply"):
        refused = error(await admin.client.post(f"/api/v1/jobs/{route}", json=wanted), 422)
        assert refused["field"] == f"jobs[1].alarm_settings.{field}"
        assert words in refused["message"]
    assert await stored(admin) == []


async def test_what_is_missing_is_deleted_when_that_is_wanted(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    await make_job(admin, await make_group(admin, "others"), key="a")
    await make_job(admin, group_id, name="without a key")
    await apply(admin, document(entry("a"), entry("b")))
    body = document(entry("b"), delete_missing=True)
    assert actions(await plan(admin, body)) == {"b": "unchanged", "a": "delete"}
    assert len(await stored(admin)) == 4
    await apply(admin, body)
    assert [(job["key"], job["name"]) for job in await stored(admin)] == [
        ("a", "settle accounts"),
        (None, "without a key"),
        ("b", "b"),
    ]


@pytest.mark.parametrize("change", ["document", "edit", "start", "new"])
async def test_what_was_not_shown_is_not_done(admin: AdminHarness, change: str) -> None:
    body = document(entry("a"), entry("b", timeout_s=1))
    await apply(admin, document(entry("a")))
    fingerprint = (await plan(admin, body))["fingerprint"]
    (job,) = await stored(admin)
    if change == "document":
        body = document(entry("a"), entry("b", timeout_s=2))
    elif change == "edit":
        await admin.client.patch(f"/api/v1/jobs/{job['id']}", json={"parameter": "other"})
    elif change == "start":
        await admin.client.post(f"/api/v1/jobs/{job['id']}/start")
    else:
        await make_job(admin, job["group_id"], key="c")
    reply = await admin.client.post("/api/v1/jobs/apply", json={**body, "fingerprint": fingerprint})
    assert error(reply, 409)["code"] == "plan_changed"
    assert "b" not in [job["key"] for job in await stored(admin)]


@pytest.mark.parametrize(
    ("bad", "status", "field", "words"),
    [
        (
            entry("z", schedule_conf="0 61 * * * ?"),
            422,
            "jobs[2].schedule_conf",
            "jobs[2] (orders/z): schedule_conf: minute: 61",
        ),
        (entry("z", children=["gone"]), 422, "jobs[2].children", "there is no job orders/gone"),
        (entry("z", timeout_s="9"), 422, "jobs[2].timeout_s", "is not a whole number"),
        (entry("z", odd=1), 422, "jobs[2].odd", "is not known here"),
        (entry("z", valid_from="soon"), 422, "jobs[2].valid_from", "is not an instant"),
        (entry("z", app_name="nobody"), 404, "jobs[2]", "there is no group nobody"),
        (entry("a"), 422, "jobs[2].key", "orders/a is jobs[0] already"),
        (entry("z/y"), 422, "jobs[2].key", "slash"),
        (
            entry("z", status="running", schedule_type="NONE", schedule_conf=""),
            409,
            "jobs[2].schedule_type",
            "has no next time",
        ),
    ],
)
async def test_one_bad_job_and_nothing_is_done(
    admin: AdminHarness, bad: Json, status: int, field: str, words: str
) -> None:
    body = document(entry("a"), entry("b"), bad)
    for path in ("plan", "apply"):
        refused = error(await admin.client.post(f"/api/v1/jobs/{path}", json=body), status)
        assert refused["field"] == field
        assert words in refused["message"]
    assert await stored(admin) == []
    assert answer(await admin.client.get("/api/v1/groups"))["items"] == []


async def test_more_jobs_than_one_transaction_should_write(admin: AdminHarness) -> None:
    body = document(*(entry(f"k{at}") for at in range(1001)))
    refused = error(await admin.client.post("/api/v1/jobs/plan", json=body), 422)
    assert "at most 1000" in refused["message"]


async def test_documents_may_be_larger_than_other_bodies(admin: AdminHarness) -> None:
    body = document(*(entry(f"k{at}", parameter="x" * 60_000) for at in range(20)))
    assert len((await plan(admin, body))["jobs"]) == 20
    too_large = document(*(entry(f"k{at}", parameter="x" * 60_000) for at in range(180)))
    assert error(await admin.client.post("/api/v1/jobs/apply", json=too_large), 413)["code"] == "too_large"


async def test_a_job_that_has_had_its_last_instant_holds_up_nothing(admin: AdminHarness) -> None:
    once = {"schedule_type": "ONCE", "schedule_conf": "2026-11-27T04:00:00Z", "status": "running"}
    body = document(entry("a", **once))
    await apply(admin, body)
    await admin.client.post(f"/api/v1/jobs/{(await stored(admin))[0]['id']}/stop")
    await admin.clock.advance(2 * 3600)
    again = await apply(admin, document(entry("a", **once), entry("b")))
    assert actions(again) == {"a": "unchanged", "b": "create"}
    assert again["jobs"][0]["note"] == "it stays stopped: its schedule has no next time any more"
    changed = document(entry("a", **once, timeout_s=5), entry("b"))
    assert error(await admin.client.post("/api/v1/jobs/apply", json=changed), 409)["code"] == "never_fires"


async def test_exports_by_names_and_without_defaults(admin: AdminHarness) -> None:
    await make_group(admin, "fixed", address_type="fixed", addresses=["http://10.0.0.7:9999/"])
    script = {"glue_type": "GLUE_SHELL", "handler": "", "glue_source": "echo 账\n", "glue_remark": "says so"}
    jobs = [entry("a", timeout_s=5, status="running"), entry("b", **script, status="stopped")]
    await apply(admin, document(*jobs))
    exported = await export(admin)
    expected = [{**jobs[0]}, {name: value for name, value in jobs[1].items() if name != "handler"}]
    assert exported["jobs"] == expected
    assert exported["groups"] == [
        {"app_name": "fixed", "title": "Orders", "address_type": "fixed", "addresses": ["http://10.0.0.7:9999/"]},
        {"app_name": "orders", "title": "Orders"},
    ]
    assert actions(await plan(admin, exported)) == {"a": "unchanged", "b": "unchanged"}
    assert (await export(admin, "fixed"))["jobs"] == []
    refused = await admin.client.get("/api/v1/jobs/export", params={"app_name": "gone"})
    assert error(refused, 404)["message"] == "there is no group gone"


async def test_a_job_that_is_to_be_of_another_type_is_told_so(admin: AdminHarness) -> None:
    await make_group(admin)
    await apply(admin, document(entry("a")))
    script = {"glue_type": "GLUE_SHELL", "glue_source": "echo 账\n", "glue_remark": "says so"}
    refused = await admin.client.post("/api/v1/jobs/plan", json=document(entry("a", **script)))
    message = error(refused, 422)["message"]
    assert message == "jobs[0] (orders/a): glue_type: is BEAN since the job was made; make another job"


async def test_jobs_without_a_key_are_not_exported_in_silence(admin: AdminHarness) -> None:
    job = await make_job(admin, name="nightly")
    refused = error(await admin.client.get("/api/v1/jobs/export"), 409)
    assert refused["code"] == "keyless_jobs"
    assert f"1 job has no key: {job['id']} (nightly)" in refused["message"]


@pytest.mark.usefixtures("children_allowed")
class TestChildren:
    async def test_are_known_by_their_keys(self, admin: AdminHarness) -> None:
        await make_job(admin, await make_group(admin, "billing"), key="bill")
        body = document(entry("a", children=["billing/bill", "b"]), entry("b", children=["orders/c"]), entry("c"))
        changes = await apply(admin, body)
        assert {"field": "children", "before": None, "after": ["billing/bill", "orders/b"]} in changes["jobs"][0][
            "fields"
        ]
        jobs = {job["key"]: job for job in await stored(admin)}
        assert jobs["a"]["child_job_ids"] == [jobs["bill"]["id"], jobs["b"]["id"]]
        assert jobs["b"]["child_job_ids"] == [jobs["c"]["id"]]
        assert [job["version"] for job in jobs.values()] == [0, 0, 0, 0]
        exported = await export(admin)
        assert {each["key"]: each.get("children") for each in exported["jobs"]} == {
            "a": ["billing/bill", "orders/b"],
            "b": ["orders/c"],
            "bill": None,
            "c": None,
        }
        assert set(actions(await plan(admin, exported)).values()) == {"unchanged"}

    async def test_of_a_deleted_job_are_refused(self, admin: AdminHarness) -> None:
        await apply(admin, document(entry("a", children=["b"]), entry("b")))
        gone = document(entry("a", children=["b"]), delete_missing=True)
        refused = error(await admin.client.post("/api/v1/jobs/apply", json=gone), 422)
        assert refused["field"] == "jobs[0].children"
        assert len(await stored(admin)) == 2

    async def test_in_a_circle_come_to_where_edits_are_checked(
        self, admin: AdminHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise InvalidFieldError("child_job_ids", "makes a circle")

        monkeypatch.setattr(Jobs, "update_in", refuse)
        body = document(entry("a", children=["b"]), entry("b", children=["a"]))
        refused = error(await admin.client.post("/api/v1/jobs/apply", json=body), 422)
        assert refused["field"] == "jobs[1].children"
        assert refused["message"] == "jobs[1] (orders/b): children: makes a circle"
        assert await stored(admin) == []

    async def test_hundreds_in_a_row(self, admin: AdminHarness) -> None:
        chain = [entry(f"k{at}", children=[f"k{at + 1}"] if at < 299 else []) for at in range(300)]
        changes = await plan(admin, document(*chain))
        assert set(actions(changes).values()) == {"create"}

    async def test_that_are_gone_are_not_exported(self, admin: AdminHarness) -> None:
        await apply(admin, document(entry("a")))
        await admin.database.write(lambda c: c.execute(job_info.update().values(child_jobid="77")))
        assert "children" not in (await export(admin))["jobs"][0]
