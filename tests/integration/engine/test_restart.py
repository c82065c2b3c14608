"""Stops, starts, and what a database that is away or in the way does: nothing is lost, nothing is run twice."""

import asyncio
import sqlite3
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jobwheel.admin.build import build_admin
from jobwheel.admin.domain.ids import JobId, RunId
from jobwheel.admin.domain.run import Outcome, Phase
from jobwheel.admin.settings import load_settings
from jobwheel.admin.store import Connection, runs
from jobwheel.admin.store.errors import DatabaseInUseError, DatabaseUnusableError, SchemaVersionError
from jobwheel.kernel.errors import JobwheelError
from tests.support.due_runs import write_due
from tests.support.live_admin import CLOCK, LiveAdmin, live_admin, seen, until
from tests.support.recording_executor import INSTANCE, Asked, RecordingExecutor, accept, hang
from tests.support.store import new_run

EVERY_SECOND: dict[str, Any] = {"schedule_type": "CRON", "schedule_conf": "* * * * * ?"}


async def _rows(path: Path, query: str) -> list[tuple[object, ...]]:
    """Rows of a database whose admin is stopped."""

    def read() -> list[tuple[object, ...]]:
        connection = sqlite3.connect(path / "jobwheel.db")
        try:
            rows = connection.execute(query).fetchall()
            connection.commit()
            return rows
        finally:
            connection.close()

    return await asyncio.to_thread(read)


async def test_a_graceful_stop_hands_over_what_waits_and_the_next_start_runs_it(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def slowly(executor: RecordingExecutor, asked: Asked) -> Any:
        await gate.wait()
        return await accept(executor, asked)

    path = tmp_path / "data"
    async with live_admin(path, "stop-and-go-7", send_timeout_s=1.0, fast_lane=4) as live:
        executor = live.executor(slowly, instance=INSTANCE)
        await executor.__aenter__()
        await executor.register()
        job = await live.job()
        # By one write: one by one the first would have given up before the last is made.
        run_ids = await write_due(live, job, 50)
        await until(lambda: len(executor.runs()) >= 4)
    # What was under way had no answer; everything else waits, and belongs to nobody.
    states = Counter(await _rows(path, "SELECT phase, owner FROM xxl_job_log"))
    assert set(states) <= {("unconfirmed", None), ("pending", None)}
    assert states["pending", None] >= 30
    gate.set()
    try:
        async with live_admin(path, "stop-and-go-7") as live:
            executor.admin_url = live.url
            await live.admin.database.write(
                lambda c: c.exec_driver_sql("UPDATE xxl_job_log SET check_ms = 1 WHERE check_ms IS NOT NULL")
            )
            for run_id in run_ids:
                assert (await live.done(run_id)).outcome is Outcome.SUCCEEDED
    finally:
        await executor.__aexit__(None, None, None)
    assert sorted(executor.started) == run_ids


async def test_what_was_not_on_the_wire_at_the_stop_is_pending_again(tmp_path: Path) -> None:
    path, token = tmp_path / "data", "not-on-the-wire-7"
    async with live_admin(path, token, address_limit=2, send_timeout_s=20.0) as live:
        executor = live.executor(hang, reports=False)
        await executor.__aenter__()
        await executor.register()
        job = await live.job()
        for _ in range(20):
            await live.trigger(job)
        await until(lambda: len(executor.runs()) == 2 and live.admin.engine.launcher.sends_in_flight > 2)
    await executor.__aexit__(None, None, None)
    states = Counter(await _rows(path, "SELECT phase, owner IS NULL FROM xxl_job_log"))
    # The two that were written may have arrived; the next start finds out.
    assert states == {("sending", 0): 2, ("pending", 1): 18}


async def test_a_take_off_under_way_at_the_stop_is_sent(live: LiveAdmin) -> None:
    async with live.executor(reports=False) as executor:
        await executor.register()
        job = await live.job()
        held, release = threading.Event(), threading.Event()

        def hold(_: Connection) -> None:
            held.set()
            assert release.wait(5)

        run_id = await live.admin.database.write(_write_far_run, live, job.id)
        holding = asyncio.create_task(live.admin.database.write(hold))
        await asyncio.to_thread(held.wait, 5)
        await _feed(live, run_id)
        await until(lambda: live.admin.engine.launcher._stages["fast"].is_writing)
        stopping = asyncio.create_task(live.admin.engine.launcher.stop())
        await CLOCK.wait(0.05)
        assert not stopping.done()
        release.set()
        await asyncio.gather(holding, stopping)
        assert [run.log_id for run in executor.runs()] == [run_id]
        assert (await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)).executor_address


def _write_far_run(connection: Connection, live: LiveAdmin, job_id: JobId) -> RunId:
    """A pending run that nobody brings to take-off for a minute."""
    run = new_run(live.admin.engine.node_id, CLOCK.now() + 60_000, job_id=job_id)
    return runs.insert_runs(connection, live.admin.installation.zone, [run])[0].id


async def _feed(live: LiveAdmin, run_id: RunId) -> None:
    pending = await live.admin.database.read(runs.load_pending, live.admin.engine.node_id, [run_id])
    live.admin.engine.launcher.submit(pending)


@pytest.mark.parametrize("instance", [INSTANCE, None], ids=["ours", "others"])
async def test_after_a_crash_pending_runs_fly_and_those_being_sent_are_found_out_about(
    tmp_path: Path, instance: str | None
) -> None:
    path, token = tmp_path / "data", "after-a-crash-7"
    async with live_admin(path, token) as live, live.executor(instance=instance) as executor:
        await executor.register()
        job = await live.job()
        sending, pending = [await live.trigger(job) for _ in range(2)]
        for run_id in (sending, pending):
            await live.done(run_id)
    # As a node that died at once would have left them; the executor had taken the one that was being sent.
    await _rows(
        path,
        f"UPDATE xxl_job_log SET outcome = NULL, trigger_code = 0, handle_code = 0, ended_ms = NULL, owner = 77, "
        f"phase = CASE id WHEN {sending} THEN 'sending' ELSE 'pending' END",
    )
    async with live_admin(path, token) as live:
        again = live.executor(instance=instance, port=executor.port, reports=False)
        again.started = {sending: executor.started[sending]}
        async with again:
            await live.run_when(pending, lambda run: run.phase is Phase.ACCEPTED)
            if instance is not None:
                # Sent again at once, and called known.
                run = await live.run_when(sending, lambda run: run.phase is Phase.ACCEPTED)
                assert [asked.body.get("resend") for asked in again.runs() if asked.log_id == sending] == [True]
            else:
                run = await live.run(sending)
                assert run.phase is Phase.UNCONFIRMED
                assert [asked.log_id for asked in again.runs()] == [pending]
            await again.report(sending)
            assert (await live.done(sending)).outcome is Outcome.SUCCEEDED


async def test_executors_that_could_not_beat_while_the_admin_was_away_are_spared(tmp_path: Path) -> None:
    path, token = tmp_path / "data", "away-a-while-7"
    async with live_admin(path, token) as live:
        executor = live.executor()
        await executor.__aenter__()
        await executor.register()
        job = await live.job()
    await _rows(path, "UPDATE xxl_job_registry SET beat_ms = beat_ms - 3600000")
    try:
        async with live_admin(path, token) as live:
            executor.admin_url = live.url
            assert (await live.done(await live.trigger(job))).outcome is Outcome.SUCCEEDED
    finally:
        await executor.__aexit__(None, None, None)


async def test_what_was_missed_while_the_admin_was_away_is_a_misfire_by_policy(tmp_path: Path) -> None:
    path, token = tmp_path / "data", "missed-it-7"
    async with live_admin(path, token) as live:
        async with live.executor() as executor:
            await executor.register()
        quiet = await live.job(schedule_type="FIX_RATE", schedule_conf="3600")
        loud = await live.job(schedule_type="FIX_RATE", schedule_conf="3600", misfire_strategy="FIRE_ONCE_NOW")
        for job in (quiet, loud):
            await live.admin.services.jobs.start(job.id, actor="test")
    # Ten and a half hours later, so that ten instants were missed and none is due just now.
    away_ms = 21 * 1_800_000
    await _rows(
        path,
        f"UPDATE xxl_job_info SET trigger_next_time = trigger_next_time - {away_ms}, anchor_ms = anchor_ms - {away_ms}",
    )
    async with live_admin(path, token) as live:
        events = await seen(lambda: _misfires(live, quiet.id))
        assert [(each["count"], each["more"], each["strategy"]) for each in events] == [(10, False, "DO_NOTHING")]
        assert (await seen(lambda: _misfires(live, loud.id)))[0]["count"] == 10
        assert await live.runs(quiet) == []
        run = (await live.runs(loud))[0]
        assert run.trigger_type == "MISFIRE"
        assert run.planned_ms is not None
        anchor_ms = (await live.admin.services.jobs.get(loud.id)).settings.anchor_ms
        assert anchor_ms is not None
        assert run.planned_ms == anchor_ms + 10 * 3_600_000
        assert len(await live.runs(loud)) == 1


async def _misfires(live: LiveAdmin, job_id: JobId) -> list[dict[str, object]]:
    events = await live.admin.services.jobs.events(job_id, None, 100)
    return [dict(each.details) for each in events if each.kind == "job.misfired"]


async def test_another_process_that_holds_the_database_costs_time_and_no_run(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        await executor.register()
        job = await live.job(running=True, **EVERY_SECOND)
        await until(lambda: len(executor.runs()) >= 1)
        await asyncio.to_thread(_hold, Path(live.admin.database.where), 1.5)
        count = len(executor.runs())
        await until(lambda: len(executor.runs()) >= count + 3)
        await live.admin.services.jobs.stop(job.id, actor="test")
        planned = sorted(run.body["scheduledTime"] for run in executor.runs())
        assert planned == list(range(planned[0], planned[0] + len(planned) * 1000, 1000))


def _hold(path: Path, seconds: float) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        threading.Event().wait(seconds)
        other.execute("COMMIT")
    finally:
        other.close()


async def test_a_write_that_cannot_be_made_now_is_made_later(live: LiveAdmin) -> None:
    async with live.executor(reports=False) as executor:
        await executor.register()
        run_id = await live.trigger(await live.job())
        await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)
        rename = "ALTER TABLE xxl_job_log RENAME TO away"
        await live.admin.database.write(lambda c: c.exec_driver_sql(rename))
        reporting = asyncio.create_task(executor.report(run_id))
        await CLOCK.wait(0.3)
        # Not acknowledged before it is committed.
        assert not reporting.done()
        await live.admin.database.write(lambda c: c.exec_driver_sql("ALTER TABLE away RENAME TO xxl_job_log"))
        assert (await reporting)["code"] == 200
        assert (await live.run(run_id)).outcome is Outcome.SUCCEEDED


async def _refused(path: Path, **settings: object) -> JobwheelError:
    wanted = {"data_dir": path, "access_token": "refused-at-start-7", **settings}
    with pytest.raises(JobwheelError) as caught:
        await build_admin(load_settings({}, wanted).settings, CLOCK)
    assert "\n" not in caught.value.message
    return caught.value


async def test_a_second_admin_on_the_same_data_is_refused(live: LiveAdmin) -> None:
    error = await _refused(Path(live.admin.database.where).parent)
    assert isinstance(error, DatabaseInUseError)
    assert "JOBWHEEL_DATA_DIR" in error.message


async def test_a_database_that_cannot_be_used_is_refused_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "file"
    await asyncio.to_thread(file.write_bytes, b"not a database at all, but long enough to be read as one " * 30)
    for url, words in (
        (f"sqlite:///{file}", "not a database"),
        (f"sqlite:///{tmp_path}", "unable to open"),
        (f"sqlite:///{file}/below/jobwheel.db", "File exists|Not a directory"),
        ("sqlite:////proc/nowhere/jobwheel.db", "No such file"),
    ):
        error = await _refused(tmp_path / "data", database_url=url)
        assert isinstance(error, DatabaseUnusableError)
        assert any(word in error.message for word in words.split("|")), error.message


async def test_a_database_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "data"
    await asyncio.to_thread(path.mkdir)
    await _rows(path, "CREATE TABLE customers (name TEXT)")
    assert isinstance(await _refused(path), SchemaVersionError)
    assert await _rows(path, "SELECT name FROM sqlite_master") == [("customers",)]


async def test_health_says_what_is_wrong_and_becomes_well_again(live: LiveAdmin) -> None:
    rename = "ALTER TABLE xxl_job_info RENAME TO away"
    await live.admin.database.write(lambda c: c.exec_driver_sql(rename))

    async def reasons() -> list[str]:
        return [reason.code for reason in live.admin.engine.reasons()]

    assert "loop_failing" in await seen(reasons)
    await live.admin.database.write(lambda c: c.exec_driver_sql("ALTER TABLE away RENAME TO xxl_job_info"))

    async def well() -> bool:
        return not await reasons()

    await seen(well)


async def test_a_deleted_jobs_pending_runs_do_not_fly_after_a_restart(tmp_path: Path) -> None:
    path, token = tmp_path / "data", "without-a-job-7"
    async with live_admin(path, token) as live, live.executor() as executor:
        await executor.register()
        job = await live.job()
        run_id = await live.trigger(job)
        await live.done(run_id)
    await _rows(path, "UPDATE xxl_job_log SET phase = 'pending', outcome = NULL, trigger_code = 0, handle_code = 0")
    await _rows(path, "DELETE FROM xxl_job_info")
    async with live_admin(path, token) as live:

        async def gone() -> bool:
            return not await live.runs(job)

        await seen(gone)
        assert live.admin.engine.collect().sends_in_flight == 0
