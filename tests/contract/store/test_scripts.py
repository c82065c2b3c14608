"""Scripts and their versions, on every database."""

from datetime import datetime

from sqlalchemy import event
from sqlalchemy.engine import Engine

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.script import DispatchScript, NewScript
from jobwheel.admin.store import runs, scripts
from jobwheel.admin.store.jobs import JobFilter, get_job, list_jobs
from tests.support.store import NOW_MS, Store

WHOLE_S_MS = NOW_MS - NOW_MS % 1000
LONG = "账" * 100_000


async def save(store: Store, job_id: JobId, source: str, now_ms: int = NOW_MS) -> int:
    new = NewScript(source, f"saves {len(source)} characters")
    return await store.database.write(scripts.save_script, store.zone, job_id, "GLUE_SHELL", new, now_ms)


async def test_a_script_is_read_at_take_off_as_it_was_saved_last(store: Store) -> None:
    bean, script = await store.job(), await store.job(glue_type="GLUE_SHELL", executor_handler=None)
    assert await save(store, script, "echo old") == WHOLE_S_MS
    saved_ms = await save(store, script, LONG)
    assert saved_ms == WHOLE_S_MS + 1000
    jobs = await store.database.read(runs.load_dispatch_jobs, store.zone, [bean, script])
    assert (jobs[bean].script, jobs[script].script) == (None, DispatchScript(LONG, saved_ms))
    found = await store.database.read(scripts.get_script, store.zone, script)
    assert found is not None
    assert (found.source, found.saved_ms, found.glue_type) == (LONG, saved_ms, "GLUE_SHELL")
    assert await store.database.read(scripts.get_script, store.zone, bean) is None


async def test_no_script_is_read_where_nobody_asks_for_it(store: Store) -> None:
    job_id = await store.job()
    asked: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        asked.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        await store.database.read(runs.load_dispatch_jobs, store.zone, [job_id])
        await store.database.read(get_job, store.zone, job_id)
        await store.database.read(list_jobs, store.zone, JobFilter(), 0, 10)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert len([each for each in asked if "xxl_job_info" in each]) == 3
    assert not [each for each in asked if "glue_source" in each]


async def test_a_script_of_an_admin_in_java_is_read(store: Store) -> None:
    # 2026-11-27 10:30 in the installation's zone.
    wall = datetime(2026, 11, 27, 10, 30)  # noqa: DTZ001 - wall time of the installation
    job_id = await store.job(glue_type="GLUE_GROOVY", glue_source="class A {}", glue_updatetime=wall)
    jobs = await store.database.read(runs.load_dispatch_jobs, store.zone, [job_id])
    assert jobs[job_id].script == DispatchScript("class A {}", store.zone.from_wall(wall))
    job_id = await store.job(glue_type="GLUE_SHELL", glue_source=None, glue_updatetime=None)
    jobs = await store.database.read(runs.load_dispatch_jobs, store.zone, [job_id])
    assert jobs[job_id].script == DispatchScript("", 0)


async def test_thirty_versions_of_each_job_are_kept(store: Store) -> None:
    one, other = await store.job(glue_type="GLUE_SHELL"), await store.job(glue_type="GLUE_SHELL")
    await save(store, other, "echo")
    for n in range(32):
        await save(store, one, "x" * n)
    kept = await store.database.read(scripts.list_versions, store.zone, one, None, 100)
    assert [each.remark for each in kept] == [f"saves {n} characters" for n in range(31, 1, -1)]
    assert [each.saved_ms for each in kept] == [WHOLE_S_MS + n * 1000 for n in range(31, 1, -1)]
    found = await store.database.read(scripts.get_version, store.zone, one, kept[-1].id)
    assert found == (kept[-1], "xx")
    assert await store.database.read(scripts.get_version, store.zone, other, kept[-1].id) is None
    await store.database.write(scripts.delete_versions_of_job, one)
    assert await store.database.read(scripts.list_versions, store.zone, one, None, 100) == []
    assert len(await store.database.read(scripts.list_versions, store.zone, other, None, 100)) == 1
