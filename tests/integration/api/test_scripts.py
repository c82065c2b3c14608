"""Scripts over REST: made with the job, saved with a remark, kept in versions."""

from typing import Any

import pytest

from jobwheel.admin.domain.policies import GlueType
from jobwheel.admin.services.deleted_jobs import DeletedJobs
from jobwheel.admin.store.tables import job_info, job_logglue
from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import Json, answer, error, make_group, make_job, patch_job, read_events, read_job

SCRIPTS = [each for each in GlueType if each is not GlueType.BEAN]


async def make_script(admin: AdminHarness, group_id: int | None = None, **fields: object) -> Json:
    script = {"handler": "", "glue_type": "GLUE_SHELL", **fields}
    return await make_job(admin, group_id, **script)


async def read_script(admin: AdminHarness, job_id: int) -> Json:
    return answer(await admin.client.get(f"/api/v1/jobs/{job_id}/script"))


async def save(admin: AdminHarness, job_id: int, source: str, remark: str = "a change", **more: object) -> Json:
    body = {"source": source, "remark": remark, **more}
    return answer(await admin.client.put(f"/api/v1/jobs/{job_id}/script", json=body))


async def versions(admin: AdminHarness, job_id: int, **query: Any) -> Json:
    return answer(await admin.client.get(f"/api/v1/jobs/{job_id}/script/versions", params=query))


@pytest.mark.parametrize("glue_type", SCRIPTS)
async def test_a_new_script_starts_with_a_sample(admin: AdminHarness, glue_type: str) -> None:
    job = await make_script(admin, glue_type=glue_type)
    script = await read_script(admin, job["id"])
    assert job["glue_type"] == script["glue_type"] == glue_type
    assert "parameter" in script["source"]
    assert (script["remark"], script["saved_at"], script["version"]) == ("a sample", "2026-11-27T02:30:00.000Z", 0)
    assert [each["remark"] for each in (await versions(admin, job["id"]))["items"]] == ["a sample"]


async def test_a_job_may_be_made_with_its_script(admin: AdminHarness) -> None:
    job = await make_script(admin, glue_source="echo 账\r\nexit 0", glue_remark="from the repository")
    script = await read_script(admin, job["id"])
    assert (script["source"], script["remark"]) == ("echo 账\nexit 0", "from the repository")
    other = await make_script(admin, group_id=job["group_id"], glue_source="echo")
    assert (await read_script(admin, other["id"]))["remark"] == "first version"


async def test_saving_makes_a_version_and_an_event(admin: AdminHarness) -> None:
    job = await make_script(admin, glue_source="echo one")
    admin.clock.step(60)
    saved = await save(admin, job["id"], "echo two\r\n", " says two ", version=0)
    assert saved == {
        "job_id": job["id"],
        "glue_type": "GLUE_SHELL",
        "source": "echo two\n",
        "remark": "says two",
        "saved_at": "2026-11-27T02:31:00.000Z",
        "version": 1,
    }
    assert await read_script(admin, job["id"]) == saved
    found = await read_job(admin, job["id"])
    assert (found["version"], found["updated_at"]) == (1, "2026-11-27T02:31:00.250Z")
    event = (await read_events(admin, job["id"]))[-1]
    assert (event["kind"], event["actor"]) == ("job.script_saved", "admin")
    assert event["details"] == {
        "before": {"remark": "first version", "saved_at": "2026-11-27T02:30:00.000Z", "bytes": 8},
        "after": {"remark": "says two", "saved_at": "2026-11-27T02:31:00.000Z", "bytes": 9},
    }
    assert [each["kind"] for each in await read_events(admin, job["id"])] == ["job.created", "job.script_saved"]


async def test_powershell_keeps_its_line_ends(admin: AdminHarness) -> None:
    job = await make_script(admin, glue_type="GLUE_POWERSHELL", glue_source="a\r\nb")
    assert (await read_script(admin, job["id"]))["source"] == "a\r\nb"
    assert (await save(admin, job["id"], "c\r\nd"))["source"] == "c\r\nd"


async def test_each_save_is_later_than_the_one_before_by_a_second(admin: AdminHarness) -> None:
    job = await make_script(admin)
    times = [(await save(admin, job["id"], f"echo {n}"))["saved_at"] for n in range(2)]
    admin.clock.step(-3600)
    times.append((await save(admin, job["id"], "echo 3"))["saved_at"])
    assert times == [f"2026-11-27T02:30:0{second}.000Z" for second in (1, 2, 3)]


async def test_the_last_thirty_versions_are_kept(admin: AdminHarness) -> None:
    job = await make_script(admin)
    other = await make_script(admin, group_id=job["group_id"])
    for n in range(35):
        await save(admin, job["id"], f"echo {n}", f"change {n}")
    page = await versions(admin, job["id"], limit=20)
    rest = await versions(admin, job["id"], limit=20, after=page["next"])
    assert [each["remark"] for each in page["items"] + rest["items"]] == [f"change {n}" for n in range(34, 4, -1)]
    assert rest["next"] is None
    oldest = rest["items"][-1]
    url = f"/api/v1/jobs/{job['id']}/script/versions/{oldest['id']}"
    assert answer(await admin.client.get(url)) == {**oldest, "source": "echo 5"}
    # The versions of one job are not to be had by another's id.
    assert error(await admin.client.get(url.replace(f"jobs/{job['id']}", f"jobs/{other['id']}")), 404)
    assert len((await versions(admin, other["id"]))["items"]) == 1


@pytest.mark.parametrize(
    ("body", "field", "part"),
    [
        ({"remark": "a change"}, "source", "is required"),
        ({"source": "echo"}, "remark", "is required"),
        ({"source": " \n", "remark": "a change"}, "source", "is empty"),
        ({"source": "a\x00b", "remark": "a change"}, "source", "U+0000"),
        ({"source": "é" * 270_000, "remark": "a change"}, "source", "540000 bytes"),
        ({"source": "echo", "remark": " ab "}, "remark", "less than 4"),
        ({"source": "echo", "remark": "x" * 101}, "remark", "at most 100"),
        ({"source": "echo", "remark": "two\nlines"}, "remark", "U+000A"),
        ({"source": 7, "remark": "a change"}, "source", "is not a text"),
        ({"source": "echo", "remark": "a change", "glue_type": "BEAN"}, "glue_type", "is not known here"),
    ],
)
async def test_what_is_no_script_is_refused(admin: AdminHarness, body: Json, field: str, part: str) -> None:
    job = await make_script(admin)
    before = await read_script(admin, job["id"])
    refused = error(await admin.client.put(f"/api/v1/jobs/{job['id']}/script", json=body), 422)
    assert (refused["code"], refused["field"]) == ("invalid", field)
    assert part in refused["message"]
    assert await read_script(admin, job["id"]) == before


@pytest.mark.parametrize(
    ("fields", "field", "part"),
    [
        ({"glue_type": "GLUE_SHELL", "glue_source": " "}, "glue_source", "is empty"),
        ({"glue_type": "GLUE_SHELL", "glue_source": "echo", "glue_remark": "no"}, "glue_remark", "less than 4"),
        ({"glue_type": "BEAN", "glue_source": "echo"}, "glue_source", "for scripts alone"),
        ({"glue_type": "BEAN", "glue_remark": "a remark"}, "glue_remark", "for scripts alone"),
    ],
)
async def test_a_job_is_not_made_with_what_is_no_script(
    admin: AdminHarness, fields: Json, field: str, part: str
) -> None:
    body = {"group_id": await make_group(admin), "name": "n", "handler": "h", "schedule_type": "NONE", **fields}
    refused = error(await admin.client.post("/api/v1/jobs", json=body), 422)
    assert refused["field"] == field
    assert part in refused["message"]
    assert answer(await admin.client.get("/api/v1/jobs"))["items"] == []


@pytest.mark.parametrize(
    ("made", "wanted"), [("GLUE_SHELL", "BEAN"), ("GLUE_SHELL", "GLUE_PYTHON"), ("BEAN", "GLUE_PHP")]
)
async def test_the_type_is_fixed_when_the_job_is_made(admin: AdminHarness, made: str, wanted: str) -> None:
    job = await make_job(admin, glue_type=made)
    refused = error(await admin.client.patch(f"/api/v1/jobs/{job['id']}", json={"glue_type": wanted}), 422)
    assert refused["field"] == "glue_type"
    assert f"is {made} since the job was made" in refused["message"]
    assert (await patch_job(admin, job["id"], glue_type=made, name="other"))["glue_type"] == made


async def test_a_job_with_a_handler_and_one_that_is_not_there_have_no_script(admin: AdminHarness) -> None:
    job = await make_job(admin)
    body = {"source": "echo", "remark": "a change"}
    for job_id in (job["id"], 4711):
        for path in ("script", "script/versions", "script/versions/1"):
            assert error(await admin.client.get(f"/api/v1/jobs/{job_id}/{path}"), 404)["code"] == "not_found"
        refused = error(await admin.client.put(f"/api/v1/jobs/{job_id}/script", json=body), 404)
        assert str(job_id) in refused["message"]


async def test_an_old_version_is_a_conflict(admin: AdminHarness) -> None:
    job = await make_script(admin)
    await save(admin, job["id"], "echo first", version=0)
    body = {"source": "echo second", "remark": "a change", "version": 0}
    assert (
        error(await admin.client.put(f"/api/v1/jobs/{job['id']}/script", json=body), 409)["code"] == "version_conflict"
    )
    assert (await read_script(admin, job["id"]))["source"] == "echo first"


async def test_an_edit_of_the_job_leaves_the_script_alone(admin: AdminHarness) -> None:
    job = await make_script(admin, glue_source="echo mine")
    before = await read_script(admin, job["id"])
    await patch_job(admin, job["id"], name="other", parameter="p")
    assert await read_script(admin, job["id"]) == {**before, "version": 1}
    assert "glue_source" not in await read_job(admin, job["id"])


async def test_a_script_without_a_time_of_another_admin_is_read(admin: AdminHarness) -> None:
    job = await make_script(admin)
    empty = job_info.update().where(job_info.c.id == job["id"]).values(glue_updatetime=None, glue_source=None)
    await admin.database.write(lambda c: c.execute(empty))
    script = await read_script(admin, job["id"])
    assert (script["source"], script["saved_at"]) == ("", "1970-01-01T00:00:00.000Z")


async def test_a_deleted_jobs_versions_go(admin: AdminHarness) -> None:
    job = await make_script(admin)
    other = await make_script(admin, group_id=job["group_id"])
    await admin.client.delete(f"/api/v1/jobs/{job['id']}")
    await DeletedJobs(admin.database, pause_s=0).run_once()
    left = await admin.database.read(lambda c: c.execute(job_logglue.select()).all())
    assert [row.job_id for row in left] == [other["id"]]
