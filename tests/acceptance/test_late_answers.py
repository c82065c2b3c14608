"""Executors that take a run and answer too late, or whose answer is lost: the run is executed once, and its row tells
the true result in the end."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.cutting_proxy import CuttingProxy
from tests.support.live_admin import until
from tests.support.recording_executor import INSTANCE, Asked, RecordingExecutor, accept
from tests.support.report import record_verdict
from tests.support.rounds import ROUNDS, rounds
from tests.support.scene import CLOCK, Scene, read_starts
from tests.support.single_node import (
    beaten,
    done,
    judge_runs,
    new_scene,
    operator,
    rows,
    rows_when,
    settled,
    working_executor,
)

RUNS = rounds(8)
# Longer than an admin waits for an answer.
ANSWERS_AFTER_S = 5.0
# Results before the time-out, before the answer, before the resend, and after it.
REPORTS_AFTER_S = (0.5, 4.0, 8.0, 17.0)
# Another make of executor is asked whether the job is idle a minute after the failure: only the long form waits for it.
SILENT_S = 65 if ROUNDS else 13
RESULTS = "SELECT id, outcome, trigger_code, handle_code, handle_msg FROM xxl_job_log"
UNCONFIRMED = "SELECT count(*) FROM xxl_job_log WHERE phase = 'unconfirmed' HAVING count(*) = ?"


class LateExecutor(RecordingExecutor):
    """Takes each run at once, says so seconds later, and reports its result at one time or another."""

    def __init__(self, scene: Scene, app_name: str, instance: str | None) -> None:
        url = f"http://127.0.0.1:{scene.admin_port}"
        super().__init__(url, scene.token, _late, instance=instance, app_name=app_name, reports=False)
        self.executions: list[tuple[int, int]] = []
        self.on_start = self._execute

    def _execute(self, asked: Asked) -> None:
        self.executions.append((asked.log_id, asked.at_ms))
        self.spawn(self._report(asked.log_id, REPORTS_AFTER_S[len(self.executions) % len(REPORTS_AFTER_S)]))

    async def _report(self, log_id: int, after_s: float) -> None:
        await CLOCK.wait(after_s)
        await self.report(log_id, 200, f"done after {after_s} s")

    def sends(self, log_id: int) -> list[dict[str, Any]]:
        """What was sent of a run, in the order of arrival."""
        return [asked.body for asked in self.runs() if asked.log_id == log_id]


async def _late(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
    if asked.log_id in executor.started:
        return await accept(executor, asked)
    executor.start(asked)
    await CLOCK.wait(ANSWERS_AFTER_S)
    return executor.envelope()


async def answers_after_the_time_out(scene: Scene) -> None:
    """The run is executed once, and a result before or after the resend turns its row to the truth."""
    ours, others = LateExecutor(scene, "orders", INSTANCE), LateExecutor(scene, "others", None)
    async with scene.admin(), operator(scene) as someone, ours, others:
        await ours.register()
        await others.register()
        jobs = [await someone.job(group_id=group_id) for group_id in (1, 2) for _ in range(RUNS)]
        run_ids = [await someone.trigger(job_id) for job_id in jobs]
        await rows_when(scene, "SELECT 1 FROM xxl_job_log WHERE phase = 'unconfirmed'")
        await done(scene, run_ids)
        await rows_when(scene, "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM xxl_job_log WHERE phase IS NOT NULL)")
    verdict = await judge_runs(scene, [*ours.executions, *others.executions])
    record_verdict("sqlite", "answers after the time-out", 2 * RUNS, verdict)
    assert verdict.good, verdict
    for run_id, outcome, trigger_code, handle_code, message in await rows(scene, RESULTS):
        assert (outcome, trigger_code, handle_code) == ("succeeded", 200, 200), run_id
        assert message.startswith("done after"), run_id
    # Only what is not over after ten seconds is sent again, by the same key, to the same process, and to ours alone.
    assert {len(others.sends(run_id)) for run_id in run_ids[RUNS:]} == {1}
    sent_again = [ours.sends(run_id) for run_id in run_ids[:RUNS] if len(ours.sends(run_id)) > 1]
    assert len(sent_again) == RUNS // len(REPORTS_AFTER_S)
    for first, second in sent_again:
        assert second == {**first, "resend": True, "instance": INSTANCE}


async def answers_cut_off(scene: Scene) -> None:
    """An executor of ours is sent the run again, knows it, and executes it once."""
    proxy = CuttingProxy(scene.executor_port, b"/run")
    async with proxy.running() as port, scene.admin(), operator(scene) as someone:
        address = f"http://127.0.0.1:{port}/"
        async with working_executor(scene, address):
            await beaten(scene)
            # Some are over before they would be sent again, some are not.
            jobs = [await someone.job(parameter=str(each % 2 * 14)) for each in range(RUNS)]
            proxy.armed = proxy.stays_armed = True
            run_ids = [await someone.trigger(job_id) for job_id in jobs]
            await until(lambda: proxy.cuts == RUNS)
            proxy.armed = proxy.stays_armed = False
            await done(scene, run_ids)
    starts = await asyncio.to_thread(read_starts, scene.starts_path)
    verdict = await judge_runs(scene, [(start.log_id, start.at_ms) for start in starts])
    record_verdict("sqlite", "answers cut off", RUNS, verdict)
    assert verdict.good, verdict
    messages: dict[int, str] = dict(
        await rows(scene, "SELECT id, trigger_msg FROM xxl_job_log WHERE outcome = 'succeeded'")
    )
    assert sorted(messages) == run_ids
    assert all("sent again" in messages[run_id] for run_id in run_ids[1::2])
    assert all("known here already" in messages[run_id] for run_id in run_ids[1::2])


async def answers_of_another_make_cut_off(scene: Scene) -> None:
    """Another make is never sent the run again, and asked after a minute; a late result is the run's."""
    url = f"http://127.0.0.1:{scene.admin_port}"
    executor = RecordingExecutor(url, scene.token, reports=False, idle=False, port=scene.executor_port)
    proxy = CuttingProxy(scene.executor_port, b"/run")
    async with proxy.running() as port, scene.admin(), operator(scene) as someone, executor:
        await executor.post("registry", {**executor.registration(), "registryValue": f"http://127.0.0.1:{port}/"})
        jobs = await someone.jobs(RUNS)
        proxy.armed = proxy.stays_armed = True
        run_ids = [await someone.trigger(job_id) for job_id in jobs]
        await rows_when(scene, UNCONFIRMED, RUNS)
        proxy.armed = proxy.stays_armed = False
        await CLOCK.wait(SILENT_S)
        assert await rows(scene, UNCONFIRMED, RUNS)
        questions = Counter(asked.body["jobId"] for asked in executor.asked if asked.path == "/idleBeat")
        for run_id in run_ids:
            await executor.report(run_id, 500, "it went wrong")
        await settled(scene, CLOCK.now())
    assert [asked.log_id for asked in executor.runs()] == run_ids
    verdict = await judge_runs(scene, [(asked.log_id, asked.at_ms) for asked in executor.runs()])
    record_verdict("sqlite", "answers of another make cut off", RUNS, verdict)
    assert verdict.good, verdict
    assert questions == (dict.fromkeys(jobs, 1) if ROUNDS else {})
    ends = await rows(scene, RESULTS)
    assert [end[1:] for end in ends] == [("failed", 200, 500, "it went wrong")] * RUNS


@pytest.mark.process
@pytest.mark.timeout(120 + SILENT_S + RUNS)
async def test_a_run_whose_answer_is_late_or_lost_is_executed_once(tmp_path: Path) -> None:
    late, cut, others = (
        await new_scene(tmp_path / "late", "orders", "others"),
        await new_scene(tmp_path / "cut"),
        await new_scene(tmp_path / "others"),
    )
    # At the same time, since most of it is waiting.
    async with asyncio.TaskGroup() as group:
        group.create_task(answers_after_the_time_out(late))
        group.create_task(answers_cut_off(cut))
        group.create_task(answers_of_another_make_cut_off(others))
