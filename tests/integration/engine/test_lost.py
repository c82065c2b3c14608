"""Accepted runs whose executor is gone, restarted or forgetful are lost in time, and no others."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.run import Outcome, Phase, Run
from tests.support.http_peer import unused_port
from tests.support.live_admin import LiveAdmin, seen, until
from tests.support.recording_executor import INSTANCE, RecordingExecutor
from tests.support.recoveries import look_now, looked, may_judge, may_not_judge
from tests.support.scene import Scene

MINUTE_MS = 60_000
OURS: dict[str, Any] = {"instance": INSTANCE, "state": "running", "reports": False}


async def taken(live: LiveAdmin, executor: RecordingExecutor, *addresses: str) -> RunId:
    """A run that the executor took and gives no result of."""
    await executor.register()
    run_id = await live.trigger(await live.job(), *addresses)
    await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)
    return run_id


async def forget_beats(live: LiveAdmin, older_by_ms: int = 10 * MINUTE_MS) -> None:
    """Let all beats be so much older."""
    statement = f"UPDATE xxl_job_registry SET beat_ms = beat_ms - {older_by_ms}"
    await live.admin.database.write(lambda c: c.exec_driver_sql(statement))


async def asked(executor: RecordingExecutor, path: str, count: int) -> None:
    await until(lambda: sum(each.path == path for each in executor.asked) >= count)


async def lost(live: LiveAdmin, run_id: RunId) -> Run:
    run = await live.done(run_id)
    assert (run.outcome, run.trigger_code, run.handle_code) == (Outcome.LOST, 200, 500)
    return run


async def test_a_run_that_its_executor_has_is_heard_of(live: LiveAdmin) -> None:
    async with live.executor(**OURS) as executor:
        run_id = await taken(live, executor)
        for state in ("running", "queued", "reporting"):
            executor.state = state
            before_ms = live.admin.database.now_ms()
            await look_now(live, run_id, 60 * MINUTE_MS)
            run = await live.run_when(run_id, lambda run: (run.unheard_ms or 0) >= before_ms)  # noqa: B023
            assert run.phase is Phase.ACCEPTED
        questions = [each for each in executor.asked if each.path == "/runStatus"]
        assert questions[0].body == {"logIds": [run_id]}


async def test_runs_at_an_address_are_asked_about_in_one_question(live: LiveAdmin) -> None:
    async with live.executor(**OURS) as executor:
        runs = {await taken(live, executor) for _ in range(3)}
        before_ms = live.admin.database.now_ms()
        # By one write: a look between two would find a part of them.
        due = f"UPDATE xxl_job_log SET check_ms = {before_ms - 1}"
        await live.admin.database.write(lambda c: c.exec_driver_sql(due))
        for run_id in runs:
            await live.run_when(run_id, lambda run: (run.unheard_ms or 0) >= before_ms)
        questions = [set(each.body["logIds"]) for each in executor.asked if each.path == "/runStatus"]
        assert questions == [runs]


async def test_a_run_that_its_process_does_not_know_is_lost_and_a_late_result_finds_it(live: LiveAdmin) -> None:
    async with live.executor(**{**OURS, "state": "unknown"}) as executor:
        run_id = await taken(live, executor)
        may_not_judge(live)
        await look_now(live, run_id)
        run = await lost(live, run_id)
        assert run.handle_message == f"lost: {executor.address} does not know the run any more, and gave no result"
        await executor.report(run_id)
        assert (await live.run(run_id)).outcome is Outcome.SUCCEEDED


async def test_a_run_of_a_process_that_was_replaced_is_lost_once_nothing_is_left_to_report(live: LiveAdmin) -> None:
    async with live.executor(**{**OURS, "state": "unknown"}) as executor:
        run_id = await taken(live, executor)
        executor.instance, executor.features = "another process", {"spooled": 2}
        await executor.register()
        await look_now(live, run_id, 60 * MINUTE_MS)
        await asked(executor, "/runStatus", 1)
        executor.features = {"spooled": 0}
        await executor.register()
        assert (await live.run(run_id)).phase is Phase.ACCEPTED
        await look_now(live, run_id)
        assert "another process has taken the place" in ((await lost(live, run_id)).handle_message or "")


async def test_a_run_where_nobody_beats_or_answers_for_two_minutes_is_lost(live: LiveAdmin) -> None:
    async with live.executor(**OURS) as executor:
        run_id = await taken(live, executor)
        await executor.disappear()
        await forget_beats(live)
        await look_now(live, run_id, 2 * MINUTE_MS)
        run = await lost(live, run_id)
        assert run.handle_message == f"lost: nobody was heard at {executor.address} for 2 minutes"


async def test_silence_says_nothing_to_a_node_that_was_away(live: LiveAdmin) -> None:
    async with live.executor(**OURS) as executor:
        run_id = await taken(live, executor)
        await executor.disappear()
        await forget_beats(live)
        node = live.admin.engine._context.node
        may_not_judge(live)
        assert node.unbroken_s < 60
        now_ms = live.admin.database.now_ms()
        await live.change_run(run_id, unheard_ms=now_ms - 60 * MINUTE_MS, check_ms=now_ms)
        live.admin.engine._recovering.wake()
        await looked(live)
        assert (await live.run(run_id)).phase is Phase.ACCEPTED
        await look_now(live, run_id, 60 * MINUTE_MS)
        await lost(live, run_id)


async def test_a_run_of_an_executor_that_beats_is_not_lost_for_want_of_an_answer(live: LiveAdmin) -> None:
    async with live.executor(**{**OURS, "state": None}) as executor:
        run_id = await taken(live, executor)
        await look_now(live, run_id, 60 * MINUTE_MS)
        await asked(executor, "/runStatus", 1)
        await looked(live)
        assert (await live.run(run_id)).phase is Phase.ACCEPTED


async def test_addresses_are_compared_without_the_slash_at_their_end(live: LiveAdmin) -> None:
    async with live.executor(**{**OURS, "state": None}) as executor:
        run_id = await taken(live, executor)
        # The run's row has another spelling of the address than the registry.
        await live.change_run(run_id, executor_address=executor.address.rstrip("/"))
        await look_now(live, run_id, 60 * MINUTE_MS)
        await asked(executor, "/runStatus", 1)
        await looked(live)
        assert (await live.run(run_id)).phase is Phase.ACCEPTED


async def test_another_make_is_asked_after_ten_minutes_and_lost_when_idle_three_times(live: LiveAdmin) -> None:
    async with live.executor(reports=False) as executor:
        run_id = await taken(live, executor)
        await look_now(live, run_id, 9 * MINUTE_MS)
        await looked(live)
        assert [each.path for each in executor.asked if each.path != "/run"] == []
        assert (await live.run(run_id)).phase is Phase.ACCEPTED
        for count in range(1, 4):
            await look_now(live, run_id, 10 * MINUTE_MS)
            await asked(executor, "/idleBeat", count)
        run = await lost(live, run_id)
        assert "idle 3 times running" in (run.handle_message or "")


async def test_a_busy_executor_of_another_make_keeps_its_run(live: LiveAdmin) -> None:
    async with live.executor(reports=False, idle=False) as executor:
        run_id = await taken(live, executor)
        for count in range(1, 5):
            await look_now(live, run_id, 10 * MINUTE_MS)
            await asked(executor, "/idleBeat", count)
        assert (await live.run(run_id)).phase is Phase.ACCEPTED


async def test_a_run_of_another_make_that_is_gone_is_lost_after_ten_minutes(live: LiveAdmin) -> None:
    async with live.executor(reports=False) as executor:
        run_id = await taken(live, executor)
        await executor.disappear()
        await forget_beats(live)
        await look_now(live, run_id, 10 * MINUTE_MS)
        assert (await lost(live, run_id)).handle_message == (
            f"lost: nobody was heard at {executor.address} for 10 minutes"
        )


async def test_a_run_of_a_fixed_address_is_lost_when_nobody_answers_there(live: LiveAdmin) -> None:
    async with live.executor(**OURS) as executor:
        run_id = await taken(live, executor)
        group = await live.admin.services.groups.get(await live.group_id())
        fixed = {"address_type": "fixed", "addresses": [executor.address]}
        await live.admin.services.groups.update(group.group.id, fixed, version=None, actor="test")
        await live.admin.engine.addresses.refresh()
        await executor.disappear()
        may_judge(live)
        await look_now(live, run_id, 9 * MINUTE_MS)
        await looked(live)
        assert (await live.run(run_id)).phase is Phase.ACCEPTED
        await look_now(live, run_id, 10 * MINUTE_MS)
        await lost(live, run_id)


@contextlib.asynccontextmanager
async def sdk_process(live: LiveAdmin, folder: Path, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """An executor on the SDK as a process of its own, which beats."""
    scene = Scene(folder, live.token, 0, port)
    module = "tests.support.working_executor_process"
    async with scene.process(module, live.url, live.token, port, scene.starts_path) as process:
        since_ms = live.admin.database.now_ms()
        await seen(lambda: _beaten(live, since_ms), 30)
        yield process


async def _beaten(live: LiveAdmin, since_ms: int) -> bool:
    query = "SELECT count(*) FROM xxl_job_registry WHERE beat_ms > ?"
    return bool(await live.admin.database.read(lambda c: c.exec_driver_sql(query, (since_ms,)).scalar()))


@pytest.mark.process
@pytest.mark.timeout(90)
@pytest.mark.parametrize("comes_back", [True, False], ids=["restarted", "gone"])
async def test_a_run_of_a_process_that_was_killed_is_lost(live: LiveAdmin, tmp_path: Path, comes_back: bool) -> None:
    port = unused_port()
    async with sdk_process(live, tmp_path / "executor", port) as process:
        run_id = await live.trigger(await live.job(parameter="600"))
        await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)
        await look_now(live, run_id, 60 * MINUTE_MS)
        await looked(live)
        assert (await live.run(run_id)).phase is Phase.ACCEPTED
        process.kill()
        await process.wait()
    if comes_back:
        async with sdk_process(live, tmp_path / "executor", port):
            await look_now(live, run_id)
            assert "another process has taken the place" in ((await lost(live, run_id)).handle_message or "")
    else:
        await forget_beats(live, 2 * MINUTE_MS)
        await look_now(live, run_id, 2 * MINUTE_MS)
        assert "nobody was heard" in ((await lost(live, run_id)).handle_message or "")
