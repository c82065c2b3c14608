"""Runs, end to end: accepted over HTTP, run in a worker, logged, reported."""

import threading

from jobwheel import Executor, JobContext
from tests.support.executor_peer import DATE_MS, ExecutorPeer
from tests.support.recording_admin import RecordingAdmin


def started(executor: Executor) -> ExecutorPeer:
    executor.start_in_background()
    return ExecutorPeer(executor.port)


def test_a_run_is_accepted_run_logged_and_reported(executor: Executor, admin: RecordingAdmin) -> None:
    seen: list[JobContext] = []

    @executor.job("settleAccounts")
    def settle(ctx: JobContext) -> str:
        seen.append(ctx)
        ctx.log.info("settling %s", ctx.parameter)
        return "settled"

    peer = started(executor)
    log_id = peer.run("settleAccounts", "day=1", broadcastIndex=2, broadcastTotal=5)

    result = admin.result_of(log_id)
    assert result == {"logId": log_id, "logDateTim": DATE_MS, "handleCode": 200, "handleMsg": "settled"}
    (ctx,) = seen
    assert (ctx.job_id, ctx.log_id, ctx.parameter) == (7, log_id, "day=1")
    assert (ctx.shard_index, ctx.shard_total, ctx.attempt, ctx.trigger_type) == (2, 5, 1, None)
    assert ctx.planned_time == ctx.trigger_time
    lines = peer.log(log_id)["logContent"].splitlines()
    assert "parameter: day=1" in lines[0]
    assert lines[1].endswith("[INFO] settling day=1")
    assert "code 200" in lines[2]
    assert "settled" in lines[2]


def test_ten_parallel_requests_of_one_job_make_one_worker_and_ten_results(
    executor: Executor, admin: RecordingAdmin
) -> None:
    names: set[str] = set()
    executor.register("who", lambda: names.add(threading.current_thread().name))
    peer = started(executor)
    requests = [peer.trigger("who") for _ in range(10)]
    replies: list[int] = []
    threads = [
        threading.Thread(target=lambda item=item: replies.append(peer.post("/run", item)["code"])) for item in requests
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    admin.wait_for_results({item["logId"] for item in requests})
    assert replies == [200] * 10
    assert len(names) == 1
