"""Scripts on their way: read at take-off, sent with the run, run by an executor on the SDK, seen in log and result."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobwheel import Executor
from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import Outcome, Phase
from jobwheel.admin.store.groups import find_groups
from tests.support.due_runs import all_done, write_due
from tests.support.http_peer import unused_port
from tests.support.live_admin import LiveAdmin, seen, until
from tests.support.recording_executor import INSTANCE, take_and_cut
from tests.support.recoveries import look_now


@pytest.fixture
async def executor(live: LiveAdmin, tmp_path: Path) -> AsyncIterator[Executor]:
    made = Executor(
        "orders",
        live.url,
        live.token,
        port=unused_port(),
        log_path=tmp_path / "executor",
        scripts_enabled=True,
        stop_deadline_s=3,
    )
    await made.start()
    await seen(lambda: live.admin.database.read(find_groups, live.admin.installation.zone, "orders"))
    yield made
    await made.stop()


async def script(live: LiveAdmin, source: str, parameter: str = "") -> Job:
    return await live.job(handler="", glue_type="GLUE_SHELL", glue_source=source, parameter=parameter)


async def lines_of(live: LiveAdmin, run_id: RunId) -> list[str]:
    """What a run's log says, without the time stamps."""
    page = await live.admin.services.run_logs.read(run_id, 1)
    return [line.partition("] ")[2] for line in (page.content or "").splitlines()]


async def test_a_script_runs_and_its_log_and_result_come_back(live: LiveAdmin, executor: Executor) -> None:
    assert executor.address is not None
    job = await script(live, 'echo "$1|$2|$3|$JOBWHEEL_LOG_ID"; echo 账 >&2; exit 3', parameter="day 1")
    run_id = await live.trigger(job)
    run = await live.done(run_id)
    assert (run.outcome, run.handle_code, run.handle_message) == (Outcome.FAILED, 500, "exit code 3")
    start, *output, end = await lines_of(live, run_id)
    assert f"GLUE_SHELL {job.id}_" in start
    assert output == [f"day 1|0|1|{run_id}", "账"]
    assert end == "end: code 500, message: exit code 3"


async def test_a_save_applies_from_the_next_run(live: LiveAdmin, executor: Executor, tmp_path: Path) -> None:
    started, go_on = tmp_path / "started", tmp_path / "go-on"
    waits = f"touch {started}; until [ -e {go_on} ]; do sleep 0.02; done; echo old"
    job = await script(live, waits)
    old = await live.trigger(job)
    await until(started.exists)
    saved = await live.admin.services.scripts.save(job.id, "echo new", "says new", version=None, actor="test")
    new = await live.trigger(job)
    go_on.touch()
    assert [(await live.done(run_id)).outcome for run_id in (old, new)] == [Outcome.SUCCEEDED] * 2
    assert ((await lines_of(live, old))[1], (await lines_of(live, new))[1]) == ("old", "new")
    files = [file.name for file in (Path(executor.settings.log_path) / "gluesource").iterdir()]
    assert files == [f"{job.id}_{saved.saved_ms}.sh"]


async def test_scripts_go_in_batches_too(live: LiveAdmin, executor: Executor, tmp_path: Path) -> None:
    assert executor.started
    job = await script(live, f'echo "$1" >> {tmp_path / "ran"}')
    await write_due(live, job, 30)
    assert {run.outcome for run in await all_done(live, job)} == {Outcome.SUCCEEDED}
    assert (tmp_path / "ran").read_text() == "day=1\n" * 30


async def test_a_run_that_is_sent_again_brings_its_script(live: LiveAdmin) -> None:
    async with live.executor(take_and_cut, instance=INSTANCE, reports=False) as recording:
        await recording.register()
        job = await script(live, "echo again")
        run_id = await live.trigger(job)
        await live.run_when(run_id, lambda run: run.phase is Phase.UNCONFIRMED)
        await look_now(live, run_id)
        await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)
        stored = await live.admin.services.scripts.get(job.id)
        sent = [
            (asked.body["glueType"], asked.body["glueSource"], asked.body["glueUpdatetime"], "resend" in asked.body)
            for asked in recording.runs()
        ]
    assert sent == [("GLUE_SHELL", "echo again", stored.saved_ms, again) for again in (False, True)]
