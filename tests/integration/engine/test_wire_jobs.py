"""Managing jobs over the executors' API, with the installation's credentials and with a group's."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.store.tables import event, job_info, job_log
from jobwheel.wire.messages import WRONG_TOKEN_MESSAGE
from tests.support.live_admin import LiveAdmin

Json = dict[str, Any]
NEW: Json = {"name": "settle accounts", "scheduleType": "CRON", "scheduleConf": "0 0 2 * * ?", "executorHandler": "x"}
SCRIPT: Json = {"name": "clean up", "scheduleType": "NONE", "glueType": "GLUE_SHELL", "glueSource": "echo 1"}


class Program:
    """Something that manages jobs, with some credentials."""

    def __init__(self, live: LiveAdmin, client: httpx.AsyncClient, headers: dict[str, str]) -> None:
        self.live = live
        self.client = client
        self.headers = headers

    async def ask(self, name: str, body: object, root: str = "/api") -> Json:
        reply = await self.client.post(f"{root}/{name}", json=body, headers=self.headers)
        assert reply.status_code == 200
        envelope: Json = reply.json()
        assert envelope["content"] == envelope["data"]
        return envelope

    async def done(self, name: str, body: object, root: str = "/api") -> Any:
        envelope = await self.ask(name, body, root)
        assert (envelope["code"], envelope["msg"]) == (200, None)
        return envelope["data"]

    async def refused(self, name: str, body: object) -> str:
        before = await everything(self.live)
        envelope = await self.ask(name, body)
        assert (envelope["code"], envelope["data"]) == (500, None)
        assert await everything(self.live) == before
        return str(envelope["msg"])

    async def job(self, job_id: str) -> Any:
        return await self.live.admin.services.jobs.get(JobId(int(job_id)))


async def everything(live: LiveAdmin) -> list[Any]:
    tables = (job_info, job_log, event)
    return [await live.admin.database.read(lambda c, t=t: c.execute(select(t)).all()) for t in tables]  # type: ignore[misc]


@pytest.fixture
async def groups(live: LiveAdmin) -> list[GroupId]:
    made = live.admin.services.groups
    return [(await made.create({"app_name": each, "title": each}, actor="t")).group.id for each in ("orders", "other")]


@pytest.fixture
async def client(live: LiveAdmin) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=live.url, trust_env=False) as opened:
        yield opened


@pytest.fixture
async def program(live: LiveAdmin, client: httpx.AsyncClient) -> Program:
    return Program(live, client, {"XXL-JOB-ACCESS-TOKEN": live.token})


@pytest.fixture
async def of_group(live: LiveAdmin, client: httpx.AsyncClient, groups: list[GroupId]) -> Program:
    token = (await live.admin.services.group_tokens.make(groups[0], actor="t")).secret.reveal()
    return Program(live, client, {"XXL-JOB-ACCESS-TOKEN": token, "XXL-JOB-APPNAME": "orders"})


@pytest.mark.parametrize("root", ["/api", "/xxl-job-admin/api", "/xxl-job-admin//api/"])
async def test_the_life_of_a_job(program: Program, groups: list[GroupId], root: str) -> None:
    job_id = await program.done("addJob", {**NEW, "jobGroup": groups[0], "unknown": 1}, root)
    assert isinstance(job_id, str)
    job = await program.job(job_id)
    assert (job.running, job.settings.handler, job.settings.schedule_conf) == (False, "x", "0 0 2 * * ?")
    # A field that is left out, or null, stays as it was; an empty one does not.
    change = {"id": job_id, "executorParam": "day=1", "author": None}
    assert await program.done("updateJob", change, root) is None
    assert (await program.job(job_id)).settings.parameter == "day=1"
    await program.done("updateJob", {"id": int(job_id), "executorParam": ""}, root)
    settings = (await program.job(job_id)).settings
    assert (settings.parameter, settings.name) == ("", "settle accounts")
    assert await program.done("startJob", {"id": int(job_id)}, root) is None
    assert (await program.job(job_id)).running
    assert await program.done("stopJob", {"id": int(job_id)}, root) is None
    assert not (await program.job(job_id)).running
    assert await program.done("removeJob", {"id": int(job_id)}, root) is None
    assert await program.refused("removeJob", {"id": int(job_id)}) == f"id: there is no job {job_id}"
    events = await program.live.admin.services.jobs.events(JobId(int(job_id)), None, 100)
    assert {each.actor for each in events} == {"api"}


async def test_a_trigger_makes_a_run_of_the_type_api(program: Program, groups: list[GroupId]) -> None:
    async with program.live.executor() as executor:
        await executor.register()
        job_id = await program.done("addJob", {**NEW, "jobGroup": groups[0], "executorParam": "own"})
        await program.done("triggerJob", {"id": int(job_id), "executorParam": None, "addressList": ""})
        await program.done("triggerJob", {"id": job_id, "executorParam": "", "addressList": executor.address})
        runs = [await program.live.done(run.id) for run in await program.live.runs(await program.job(job_id))]
        assert [(run.trigger_type, run.parameter) for run in runs] == [("API", "own"), ("API", "")]
        message = await program.refused("triggerJob", {"id": job_id, "addressList": "http://10.9.9.9:1/"})
        assert message.startswith("addressList: http://10.9.9.9:1/ is not an address")


@pytest.mark.parametrize("remark", ["", "GLUE"])
async def test_a_client_sends_every_field_that_the_protocol_has(
    program: Program, groups: list[GroupId], remark: str
) -> None:
    every = {
        "jobGroup": groups[0],
        "name": "settle accounts",
        "author": "ann",
        "alarmEmail": "",
        "scheduleType": "CRON",
        "scheduleConf": "0 0 2 * * ?",
        "misfireStrategy": "DO_NOTHING",
        "executorRouteStrategy": "FIRST",
        "executorHandler": "x",
        "executorParam": "",
        "executorBlockStrategy": "SERIAL_EXECUTION",
        "executorTimeout": 0,
        "executorFailRetryCount": 0,
        "glueType": "BEAN",
        "glueSource": "",
        "glueRemark": remark,
    }
    job_id = await program.done("addJob", every)
    await program.done("updateJob", {**every, "id": job_id, "executorFailRetryCount": 2})
    del every["glueType"]
    await program.done("updateJob", {**every, "id": job_id, "author": "bob"})
    settings = (await program.job(job_id)).settings
    assert (settings.retry_count, settings.author, settings.glue_type) == (0, "bob", "BEAN")


BAD: list[tuple[str, Json, str]] = [
    ("addJob", {**NEW, "name": None}, "name: is required"),
    ("addJob", {**NEW, "scheduleType": None}, "scheduleType: is required"),
    ("addJob", {**NEW, "scheduleConf": "0 0 25 * * ?"}, "scheduleConf: hour: 25"),
    ("addJob", {**NEW, "executorRouteStrategy": "NEAREST"}, "executorRouteStrategy: 'NEAREST' is not one of FIRST"),
    ("addJob", {**NEW, "executorHandler": ""}, "executorHandler: is required for glueType BEAN"),
    ("addJob", {**NEW, "executorTimeout": -1}, "executorTimeout: -1"),
    ("addJob", {**NEW, "jobGroup": 4711}, "jobGroup: there is no group 4711"),
    ("addJob", {**NEW, "jobGroup": "one"}, "jobGroup: "),
    ("addJob", {**NEW, "glueSource": "echo"}, "glueSource: has a meaning for scripts alone"),
    ("addJob", {**SCRIPT, "glueRemark": "x"}, "glueRemark: "),
    ("addJob", {**SCRIPT, "glueSource": " "}, "glueSource: is empty"),
    ("updateJob", {"id": 4711, "name": "x"}, "id: there is no job 4711"),
    ("updateJob", {"name": "x"}, "id: is missing"),
    ("startJob", {"id": "x"}, "id: is not the id of a job"),
    ("stopJob", {"id": 4711}, "id: there is no job 4711"),
    ("triggerJob", {"id": 4711}, "id: there is no job 4711"),
]


@pytest.mark.parametrize(("name", "body", "words"), BAD)
async def test_bad_input_is_named_and_changes_nothing(
    program: Program, groups: list[GroupId], name: str, body: Json, words: str
) -> None:
    if name == "addJob":
        body = {"jobGroup": groups[0], **body}
    assert (await program.refused(name, body)).startswith(words)


async def test_a_job_that_never_runs_is_not_started(program: Program, groups: list[GroupId]) -> None:
    job_id = await program.done("addJob", {**NEW, "jobGroup": groups[0], "scheduleType": "NONE", "scheduleConf": ""})
    assert (await program.refused("startJob", {"id": job_id})).startswith("scheduleType: ")


async def test_scripts_obey_the_rules_of_rest(program: Program, groups: list[GroupId]) -> None:
    job_id = await program.done("addJob", {**SCRIPT, "jobGroup": groups[0]})
    scripts = program.live.admin.services.scripts
    assert (await scripts.get(JobId(int(job_id)))).source == "echo 1"
    change = {"id": job_id, "glueSource": "echo 2\r\n", "glueRemark": "say two", "name": "renamed"}
    await program.done("updateJob", change)
    assert (await scripts.get(JobId(int(job_id)))).source == "echo 2\n"
    job = await program.job(job_id)
    assert (job.settings.name, job.version) == ("renamed", 1)
    kinds = [each.kind for each in await program.live.admin.services.jobs.events(job.id, None, 100)]
    assert kinds == ["job.script_saved", "job.updated", "job.created"]
    # Nothing of a change that cannot be made whole.
    for bad in ({"glueRemark": None}, {"glueRemark": "x"}, {"glueSource": ""}, {"scheduleType": "NEVER"}):
        await program.refused("updateJob", {**change, "name": "half", **bad})
    bean = await program.done("addJob", {**NEW, "jobGroup": groups[0]})
    message = await program.refused("updateJob", {**change, "id": bean})
    assert message == "glueSource: has a meaning for scripts alone, not for glueType BEAN"
    assert len(await scripts.versions(job.id, None, 10)) == 2


class TestOfOneGroup:
    async def test_its_own_jobs(self, of_group: Program, groups: list[GroupId]) -> None:
        job_id = await of_group.done("addJob", NEW)
        assert (await of_group.job(job_id)).settings.group_id == groups[0]
        for name in ("startJob", "stopJob", "triggerJob", "removeJob"):
            await of_group.done(name, {"id": job_id})
        events = await of_group.live.admin.services.jobs.events(JobId(int(job_id)), None, 100)
        assert {each.actor for each in events} == {"api:orders"}

    async def test_those_of_others_are_not_there(
        self, of_group: Program, program: Program, groups: list[GroupId]
    ) -> None:
        job_id = await program.done("addJob", {**NEW, "jobGroup": groups[1]})
        for name in ("updateJob", "startJob", "stopJob", "triggerJob", "removeJob"):
            assert await of_group.refused(name, {"id": job_id, "name": "x"}) == f"id: there is no job {job_id}"
        words = f"jobGroup: there is no group {groups[1]}"
        assert await of_group.refused("addJob", {**NEW, "jobGroup": groups[1]}) == words
        own = await of_group.done("addJob", {**NEW, "jobGroup": groups[0]})
        assert await of_group.refused("updateJob", {"id": own, "jobGroup": groups[1]}) == words


async def test_without_a_token_nothing_is_looked_at(program: Program) -> None:
    program.headers = {}
    for name in ("addJob", "updateJob", "removeJob", "startJob", "stopJob", "triggerJob"):
        assert await program.refused(name, ["no", "object"]) == WRONG_TOKEN_MESSAGE
