import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobwheel.executor.accepted_run import AcceptedRun, RunsOfJob
from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.handlers import JobHandler
from jobwheel.executor.run_log import RunLogFolder
from jobwheel.executor.workers import WorkerPool
from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.messages import TriggerRequest
from tests.support.recording_admin import wait_until
from tests.support.refused_threads import refused_threads

MakePool = Callable[..., WorkerPool]
RunOne = Callable[[AcceptedRun, HandlerLoop], None]
HANDLER = JobHandler("x", lambda: None, takes_context=False)


@pytest.fixture
def make_pool() -> Iterator[MakePool]:
    pools: list[WorkerPool] = []

    def make(run_one: RunOne, *, queue_limit: int = 1000, idle_s: float = 90.0) -> WorkerPool:
        pools.append(WorkerPool(run_one, SystemClock(), queue_limit, idle_s))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()
        assert pool.join(5)


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[[int, int], AcceptedRun]:
    folder = RunLogFolder(tmp_path, SystemClock())

    def make(job_id: int, log_id: int) -> AcceptedRun:
        run_log = folder.create(log_id, 0)
        run_log.close()
        return AcceptedRun(TriggerRequest(job_id=job_id, log_id=log_id), HANDLER, run_log)

    return make


MakeRun = Callable[[int, int], AcceptedRun]


class Gate:
    """A `run_one` that holds each run until it is let through."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.go = threading.Semaphore(0)

    def __call__(self, run: AcceptedRun, loop: HandlerLoop) -> None:
        self.began.append(run.request.log_id)
        assert self.go.acquire(timeout=8)


def test_runs_of_a_job_go_one_by_one_in_order(make_pool: MakePool, make_run: MakeRun) -> None:
    gate = Gate()
    pool = make_pool(gate)
    for log_id in range(5):
        pool.submit(make_run(7, log_id))
    wait_until(lambda: gate.began == [0])
    assert (pool.running, pool.queued, pool.threads) == (1, 4, 1)
    gate.go.release()
    wait_until(lambda: gate.began == [0, 1])
    gate.go.release(4)
    wait_until(lambda: pool.is_idle(7))
    assert gate.began == [0, 1, 2, 3, 4]


def test_a_worker_that_is_woken_later_takes_all_that_has_come(make_pool: MakePool, make_run: MakeRun) -> None:
    gate = Gate()
    gate.go.release(3)
    pool = make_pool(gate)
    pool.submit(make_run(7, 1))
    wait_until(lambda: pool._workers[7].waits)
    pool.submit(make_run(7, 2), wake=False)
    pool.submit(make_run(7, 3), wake=False)
    assert (gate.began, pool._workers[7].waits) == ([1], True)
    pool.wake()
    wait_until(lambda: gate.began == [1, 2, 3])


def test_runs_of_different_jobs_go_side_by_side(make_pool: MakePool, make_run: MakeRun) -> None:
    gate = Gate()
    pool = make_pool(gate)
    for job_id in range(5):
        pool.submit(make_run(job_id, job_id))
    wait_until(lambda: sorted(gate.began) == [0, 1, 2, 3, 4])
    gate.go.release(5)


def test_idle_means_neither_running_nor_queued(make_pool: MakePool, make_run: MakeRun) -> None:
    gate = Gate()
    pool = make_pool(gate)
    assert pool.is_idle(7)
    pool.submit(make_run(7, 1))
    assert not pool.is_idle(7)
    assert pool.is_idle(8)
    wait_until(lambda: pool.queued == 0)
    assert not pool.is_idle(7)
    gate.go.release()
    wait_until(lambda: pool.is_idle(7))


def test_the_queue_is_bounded_without_the_run_under_way(make_pool: MakePool, make_run: MakeRun) -> None:
    gate = Gate()
    pool = make_pool(gate, queue_limit=2)
    pool.submit(make_run(7, 1))
    wait_until(lambda: gate.began == [1])
    pool.submit(make_run(7, 2))
    assert pool.has_room(7)
    pool.submit(make_run(7, 3))
    assert not pool.has_room(7)
    assert pool.has_room(8)
    gate.go.release(3)


def test_an_idle_worker_ends_and_the_next_run_gets_a_new_one(make_pool: MakePool, make_run: MakeRun) -> None:
    threads: list[threading.Thread] = []
    pool = make_pool(lambda run, loop: threads.append(threading.current_thread()), idle_s=0.01)
    pool.submit(make_run(7, 1))
    wait_until(lambda: len(threads) == 1 and pool.threads == 0)
    threads[0].join(5)
    assert not threads[0].is_alive()
    pool.submit(make_run(7, 2))
    wait_until(lambda: len(threads) == 2)


def test_no_run_is_lost_when_a_worker_ends_at_the_moment_of_a_submission(
    make_pool: MakePool, make_run: MakeRun
) -> None:
    done = threading.Semaphore(0)
    workers: set[threading.Thread] = set()

    def run_one(run: AcceptedRun, loop: HandlerLoop) -> None:
        workers.add(threading.current_thread())
        done.release()

    # An idle time of next to nothing makes nearly each submission meet a worker that is about to end.
    pool = make_pool(run_one, idle_s=1e-9)
    for log_id in range(400):
        pool.submit(make_run(7, log_id))
        assert done.acquire(timeout=5), f"run {log_id} was lost"
    assert len(workers) > 1


def test_a_fault_of_ours_costs_one_run_only(
    make_pool: MakePool, make_run: MakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[int] = []

    def run_one(run: AcceptedRun, loop: HandlerLoop) -> None:
        seen.append(run.request.log_id)
        if run.request.log_id == 1:
            raise RuntimeError("ours")

    pool = make_pool(run_one)
    pool.submit(make_run(7, 1))
    pool.submit(make_run(7, 2))
    wait_until(lambda: pool.is_idle(7))
    assert seen == [1, 2]
    assert "worker.run_not_settled" in caplog.text


def test_close_lets_the_queue_be_worked_off(make_pool: MakePool, make_run: MakeRun) -> None:
    seen: list[int] = []
    pool = make_pool(lambda run, loop: seen.append(run.request.log_id))
    for log_id in range(50):
        pool.submit(make_run(log_id % 3, log_id))
    pool.close()
    assert pool.join(5)
    assert sorted(seen) == list(range(50))
    assert pool.threads == 0


def test_what_is_queued_can_be_taken_away_and_what_runs_goes_on(make_pool: MakePool, make_run: MakeRun) -> None:
    gate = Gate()
    pool = make_pool(gate)
    runs = [make_run(7, log_id) for log_id in range(3)]
    for run in runs:
        pool.submit(run)
    wait_until(lambda: gate.began == [0])
    pool.close()
    assert not pool.join(0)
    assert pool.take_away_queued() == runs[1:]
    assert pool.runs_under_way() == runs[:1]
    assert pool.queued == 0
    gate.go.release()


def test_one_run_can_be_taken_out_of_its_queue(make_pool: MakePool, make_run: MakeRun) -> None:
    gate = Gate()
    pool = make_pool(gate)
    runs = [make_run(7, log_id) for log_id in range(4)]
    for run in runs:
        pool.submit(run)
    wait_until(lambda: gate.began == [0])
    assert pool.take_away_run(2) == RunsOfJob(None, [runs[2]])
    assert pool.take_away_run(2) == pool.take_away_run(9) == pool.take_away(9) == RunsOfJob(None, [])
    assert pool.take_away_run(0) == RunsOfJob(runs[0], [])
    assert pool.queued == 2
    gate.go.release(3)
    wait_until(lambda: pool.is_idle(7))
    assert gate.began == [0, 1, 3]


def test_what_waits_for_a_job_can_be_taken_away_and_the_job_goes_on(make_pool: MakePool, make_run: MakeRun) -> None:
    gate = Gate()
    pool = make_pool(gate, queue_limit=2)
    runs = [make_run(7, log_id) for log_id in range(3)]
    pool.submit(runs[0])
    wait_until(lambda: gate.began == [0])
    pool.submit(runs[1])
    pool.submit(runs[2])
    assert not pool.has_room(7)
    assert pool.take_away(7) == RunsOfJob(runs[0], runs[1:])
    assert pool.has_room(7)
    assert pool.queued == 0
    pool.submit(make_run(7, 9))
    gate.go.release(2)
    wait_until(lambda: pool.is_idle(7))
    assert gate.began == [0, 9]


def test_the_job_of_a_thread_that_is_left_alone_goes_on_in_a_new_one(
    make_pool: MakePool, make_run: MakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    gate, threads = Gate(), dict[int, threading.Thread]()

    def run_one(run: AcceptedRun, loop: HandlerLoop) -> None:
        threads[run.request.log_id] = threading.current_thread()
        if run.request.log_id == 0:
            gate(run, loop)

    pool = make_pool(run_one)
    runs = [make_run(7, log_id) for log_id in range(3)]
    for run in runs:
        pool.submit(run)
    wait_until(lambda: gate.began == [0])
    assert pool.leave_alone(runs[0]) == []
    wait_until(lambda: set(threads) == {0, 1, 2} and pool.is_idle(7))
    assert threads[0] is not threads[1] is threads[2]
    assert (pool.abandoned, pool.running, pool.queued) == (1, 0, 0)
    assert "worker.abandoned" in caplog.text
    # It has ended its run, or another one is under way: nothing to leave.
    assert pool.leave_alone(runs[1]) == []
    assert pool.abandoned == 1
    gate.go.release()
    threads[0].join(5)
    assert not threads[0].is_alive()
    assert pool.abandoned == 0


def test_runs_that_get_no_new_thread_are_given_back(make_pool: MakePool, make_run: MakeRun) -> None:
    gate = Gate()
    pool = make_pool(gate)
    runs = [make_run(7, log_id) for log_id in range(3)]
    for run in runs:
        pool.submit(run)
    wait_until(lambda: gate.began == [0])

    with refused_threads():
        assert pool.leave_alone(runs[0]) == runs[1:]
    assert (pool.queued, pool.threads) == (0, 0)
    pool.submit(make_run(7, 9))
    wait_until(lambda: gate.began == [0, 9])
    gate.go.release(2)


def test_after_a_run_that_was_forced_the_job_goes_on_in_a_new_thread(make_pool: MakePool, make_run: MakeRun) -> None:
    gate, threads = Gate(), dict[int, threading.Thread]()

    def run_one(run: AcceptedRun, loop: HandlerLoop) -> None:
        threads[run.request.log_id] = threading.current_thread()
        gate(run, loop)
        run.forced = run.request.log_id in {0, 2}

    pool = make_pool(run_one)
    for log_id in range(3):
        pool.submit(make_run(7, log_id))
    gate.go.release(3)
    wait_until(lambda: len(threads) == 3 and pool.threads == 0)
    assert threads[0] is not threads[1] is threads[2]
    pool.submit(make_run(7, 3))
    gate.go.release()
    wait_until(lambda: len(threads) == 4 and pool.is_idle(7))
    assert threads[3] is not threads[2]
    wait_until(lambda: pool.abandoned == 0)


def test_threads_that_are_left_alone_are_not_waited_for(make_pool: MakePool, make_run: MakeRun) -> None:
    gate = Gate()
    pool = make_pool(gate)
    run = make_run(7, 1)
    pool.submit(run)
    wait_until(lambda: gate.began == [1])
    pool.close()
    assert not pool.join(0)
    pool.leave_alone(run)
    assert pool.join(5)
    gate.go.release()
    wait_until(lambda: pool.abandoned == 0)


def test_files_of_queued_runs_are_not_all_kept_open(make_pool: MakePool, tmp_path: Path) -> None:
    gate = Gate()
    pool = make_pool(gate)
    folder = RunLogFolder(tmp_path, SystemClock())
    before = len(list(Path("/proc/self/fd").iterdir()))
    runs = []
    for log_id in range(600):
        runs.append(AcceptedRun(TriggerRequest(job_id=7, log_id=log_id), HANDLER, folder.create(log_id, 0)))
        pool.submit(runs[-1])
    assert len(list(Path("/proc/self/fd").iterdir())) - before < 300
    for run in runs:
        run.run_log.close()
    gate.go.release(600)
