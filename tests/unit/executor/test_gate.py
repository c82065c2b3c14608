import contextlib
import os
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobwheel.executor.accepted_run import AcceptedRun
from jobwheel.executor.control import RunControl
from jobwheel.executor.disk_threads import DiskThreads
from jobwheel.executor.errors import StorageError
from jobwheel.executor.execution import JobRunner
from jobwheel.executor.gate import DISCARD_LATER, Refusal, RunGate
from jobwheel.executor.handler_table import HandlerTable
from jobwheel.executor.ledger import RunLedger
from jobwheel.executor.run_log import RunLog, RunLogFolder
from jobwheel.executor.script_files import ScriptFiles
from jobwheel.executor.scripts import Scripts
from jobwheel.executor.workers import WorkerPool
from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.messages import Reason, Result, TriggerRequest

REQUEST = TriggerRequest(job_id=7, log_id=1, log_date_time=1000, executor_handler="x", glue_type="BEAN")


class MeetingFolder(RunLogFolder):
    """Whoever makes a log waits a little for somebody else who does."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, SystemClock())
        self._meeting = threading.Barrier(2)

    def create(self, log_id: int, log_date_time: int) -> RunLog:
        with contextlib.suppress(threading.BrokenBarrierError):
            self._meeting.wait(0.2)
        return super().create(log_id, log_date_time)


class Pool(WorkerPool):
    """Takes runs, or refuses as a system without threads does; runs none of them."""

    def __init__(self) -> None:
        super().__init__(lambda run, loop: None, SystemClock(), 10, 1.0)
        self.taken: list[AcceptedRun] = []
        self.taken_at_wake: list[int] = []
        self.out_of_threads = False

    def submit(self, run: AcceptedRun, *, wake: bool = True) -> None:
        if self.out_of_threads:
            raise RuntimeError("can't start new thread")
        run.run_log.close()
        self.taken.append(run)

    def wake(self) -> None:
        self.taken_at_wake.append(len(self.taken))


def new_gate(folder: RunLogFolder, pool: WorkerPool, control: RunControl | None = None) -> RunGate:
    handlers = HandlerTable()
    handlers.register("x", lambda: None)
    scripts = Scripts(ScriptFiles(Path("not-made")), SystemClock(), enabled=False)
    control = control or RunControl(pool, JobRunner(lambda result: None))
    return RunGate("this", handlers, scripts, RunLedger(SystemClock()), folder, pool, control)


def test_two_threads_that_bring_the_same_run_run_it_once(tmp_path: Path) -> None:
    pool = Pool()
    gate = new_gate(MeetingFolder(tmp_path), pool)
    answers: list[Refusal | None] = []
    threads = [threading.Thread(target=lambda: answers.append(gate.submit(REQUEST))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pool.taken) == 1
    assert {answer and answer.reason for answer in answers} == {None, Reason.REPEATED}


def test_a_run_that_gets_no_thread_is_refused_and_leaves_no_trace(tmp_path: Path) -> None:
    pool = Pool()
    folder = RunLogFolder(tmp_path, SystemClock())
    gate = new_gate(folder, pool)
    pool.out_of_threads = True
    refusal = gate.submit(REQUEST)
    assert refusal is not None
    assert "can't start new thread" in refusal.message
    assert folder.find(1, 1000) is None
    pool.out_of_threads = False
    assert gate.submit(REQUEST) is None


def test_a_run_that_is_sent_for_the_result_of_the_one_before_is_not_discarded(tmp_path: Path) -> None:
    answers: list[Refusal | None] = []
    idle: list[bool] = []
    both = threading.Event()

    def settle(result: Result) -> None:
        # Here an admin may have it already; the worker has still to come back from its handler.
        if result.log_id == 1:
            idle.append(pool.is_idle(7))
            answers.append(gate.submit(msgspec.structs.replace(request, log_id=2)))
            idle.append(pool.is_idle(7))
        else:
            both.set()

    runner = JobRunner(settle)
    pool = WorkerPool(runner.run_one, SystemClock(), 10, 1.0)
    gate = new_gate(RunLogFolder(tmp_path, SystemClock()), pool, RunControl(pool, runner))
    request = msgspec.structs.replace(REQUEST, executor_block_strategy=DISCARD_LATER)
    assert gate.submit(request) is None
    ran = both.wait(5)
    pool.close()
    assert pool.join(5)
    assert (answers, idle, ran) == ([None], [True, False], True)


def test_a_refused_run_leaves_the_log_alone_that_was_there_before(tmp_path: Path) -> None:
    pool = Pool()
    folder = RunLogFolder(tmp_path, SystemClock())
    gate = new_gate(folder, pool)
    assert gate.submit(REQUEST) is None
    path = Path(folder.path(1, 1000))
    path.write_text("what the run wrote")
    # Known no more, and sent anew: as after ten minutes.
    pool.out_of_threads = True
    assert new_gate(folder, pool).submit(REQUEST) is not None
    assert path.read_text() == "what the run wrote"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"executor_handler": "unknown"}, "not registered"),
        ({"glue_type": "GLUE_SHELL", "glue_source": "echo"}, "scripts are off"),
        ({"executor_block_strategy": "COVER_EARLY"}, "failed here: ZeroDivisionError"),
    ],
)
async def test_a_refused_run_leaves_no_file_and_may_be_sent_again(
    tmp_path: Path, change: dict[str, str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    class Control(RunControl):
        def cover(self, job_id: int) -> int:
            raise ZeroDivisionError

    pool = Pool()
    gate = new_gate(RunLogFolder(tmp_path, SystemClock()), pool, Control(pool, JobRunner(lambda result: None)))
    (refusal,) = await gate.submit_all([msgspec.structs.replace(REQUEST, **change)])
    assert refusal is not None
    assert words in refusal.message
    assert not [name for _, _, names in os.walk(tmp_path) for name in names]
    assert gate.submit(REQUEST) is None
    gate.close()


def requests_of(*log_ids: int) -> list[TriggerRequest]:
    return [msgspec.structs.replace(REQUEST, log_id=log_id) for log_id in log_ids]


def reasons(refusals: list[Refusal | None]) -> list[Reason | None]:
    return [None if refusal is None else refusal.reason for refusal in refusals]


async def test_a_batch_keeps_its_order_and_runs_a_repeat_in_it_once(tmp_path: Path) -> None:
    pool = Pool()
    gate = new_gate(RunLogFolder(tmp_path, SystemClock()), pool)
    refusals = await gate.submit_all(requests_of(3, 1, 3, 2))
    assert reasons(refusals) == [None, None, Reason.REPEATED, None]
    assert [run.request.log_id for run in pool.taken] == [3, 1, 2]
    assert reasons(await gate.submit_all(requests_of(1, 4))) == [Reason.REPEATED, None]
    gate.close()


async def test_the_files_of_a_batch_are_made_apart_from_the_event_loop(tmp_path: Path) -> None:
    threads: set[int] = set()

    class Watched(RunLogFolder):
        def create(self, log_id: int, log_date_time: int) -> RunLog:
            threads.add(threading.get_ident())
            return super().create(log_id, log_date_time)

    gate = new_gate(Watched(tmp_path, SystemClock()), Pool())
    for first in (1, 4):
        await gate.submit_all(requests_of(first, first + 1, first + 2))
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    gate.close()


async def test_a_fault_of_ours_at_one_run_of_a_batch_spoils_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Faulty(RunLogFolder):
        def create(self, log_id: int, log_date_time: int) -> RunLog:
            if log_id == 2:
                raise ZeroDivisionError
            return super().create(log_id, log_date_time)

    pool = Pool()
    gate = new_gate(Faulty(tmp_path, SystemClock()), pool)
    first, second, third = await gate.submit_all(requests_of(1, 2, 3))
    assert (first, third) == (None, None)
    assert second is not None
    assert second.message == "the run failed here: ZeroDivisionError; the log has the details"
    assert [run.request.log_id for run in pool.taken] == [1, 3]
    gate.close()


async def test_a_closed_gate_judges_a_batch_run_by_run(tmp_path: Path) -> None:
    gate = new_gate(RunLogFolder(tmp_path, SystemClock()), Pool())
    await gate.submit_all(requests_of(1))
    gate.close()
    gate.close()
    assert reasons(await gate.submit_all(requests_of(1, 2))) == [Reason.REPEATED, Reason.STOPPING]


async def test_a_gate_that_closes_just_now_says_that_it_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = new_gate(RunLogFolder(tmp_path, SystemClock()), Pool())
    assert await gate.submit_one(REQUEST) is None
    do = DiskThreads.do

    async def late(threads: DiskThreads, function: Any, *args: Any) -> Any:
        # By another thread, when this one has seen that it is open.
        gate.close()
        return await do(threads, function, *args)

    monkeypatch.setattr(DiskThreads, "do", late)
    assert reasons([await gate.submit_one(REQUEST)]) == [Reason.REPEATED]
    monkeypatch.setattr(gate, "_closed", False)
    assert reasons(await gate.submit_all(requests_of(1, 2))) == [Reason.REPEATED, Reason.STOPPING]


def test_a_closed_gate_knows_what_it_took(tmp_path: Path) -> None:
    pool = Pool()
    gate = new_gate(RunLogFolder(tmp_path, SystemClock()), pool)
    assert gate.submit(REQUEST) is None
    gate.close()
    repeated, stopping = gate.submit(REQUEST), gate.submit(TriggerRequest(job_id=7, log_id=2))
    assert repeated is not None
    assert repeated.reason is Reason.REPEATED
    assert stopping is not None
    assert stopping.reason is Reason.STOPPING


async def test_a_draining_executor_refuses_new_runs_until_it_drains_no_more(tmp_path: Path) -> None:
    gate = new_gate(RunLogFolder(tmp_path, SystemClock()), Pool())
    assert gate.submit(REQUEST) is None
    changes = [gate.draining, gate.drain("a", draining=True), gate.drain("a", draining=True), gate.draining]
    assert changes == [False, True, False, True]
    first, second, third = await gate.submit_all(requests_of(1, 2, 3))
    assert reasons([first, second, third]) == [Reason.REPEATED, Reason.STOPPING, Reason.STOPPING]
    assert second is not None
    assert "drained" in second.message
    changes = [gate.drain("a", draining=False), gate.draining]
    assert changes == [True, False]
    assert gate.submit(requests_of(2)[0]) is None
    gate.close()
    gate.drain("a", draining=False)
    assert gate.draining
    assert reasons([gate.submit(requests_of(3)[0])]) == [Reason.STOPPING]


def test_each_admin_has_a_wish_of_its_own(tmp_path: Path) -> None:
    gate = new_gate(RunLogFolder(tmp_path, SystemClock()), Pool())
    gate.drain("a", draining=True)
    assert [gate.drain("b", draining=False), gate.draining] == [False, True]
    assert [gate.drain("b", draining=True), gate.drain("a", draining=False), gate.draining] == [False, False, True]
    assert [gate.drain("b", draining=False), gate.draining] == [True, False]


def test_a_covering_run_that_cannot_be_logged_covers_nothing(tmp_path: Path) -> None:
    class Full(RunLogFolder):
        def create(self, log_id: int, log_date_time: int) -> RunLog:
            raise StorageError(tmp_path, "No space left on device")

    covered: list[int] = []

    class Control(RunControl):
        def cover(self, job_id: int) -> int:
            covered.append(job_id)
            return 0

    pool = Pool()
    gate = new_gate(Full(tmp_path, SystemClock()), pool, Control(pool, JobRunner(lambda result: None)))
    refusal = gate.submit(msgspec.structs.replace(REQUEST, executor_block_strategy="COVER_EARLY"))
    assert refusal is not None
    assert "No space left" in refusal.message
    assert covered == []


async def test_workers_are_woken_for_many_runs_of_a_batch_at_once_and_for_its_last(tmp_path: Path) -> None:
    pool = Pool()
    gate = new_gate(RunLogFolder(tmp_path, SystemClock()), pool)
    requests = [msgspec.structs.replace(REQUEST, log_id=log_id, job_id=log_id) for log_id in range(1, 121)]
    assert await gate.submit_all(requests) == [None] * 120
    assert pool.taken_at_wake == [50, 100, 120]


async def test_workers_are_woken_for_the_runs_before_one_that_breaks_the_batch_off(tmp_path: Path) -> None:
    class Broken(Pool):
        def submit(self, run: AcceptedRun, *, wake: bool = True) -> None:
            if self.taken:
                raise KeyboardInterrupt
            super().submit(run, wake=wake)

    pool = Broken()
    gate = new_gate(RunLogFolder(tmp_path, SystemClock()), pool)
    with pytest.raises(KeyboardInterrupt):
        gate._submit_each([REQUEST, msgspec.structs.replace(REQUEST, log_id=2)])
    assert pool.taken_at_wake == [1]
