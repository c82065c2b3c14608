"""A disk that hangs keeps runs waiting, and nobody from seeing that the executor lives."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from jobwheel import Executor
from jobwheel.executor import run_log
from jobwheel.wire.codec import encode_envelope
from tests.integration.executor.conftest import MakeExecutor
from tests.support.executor_peer import DATE_MS, ExecutorPeer
from tests.support.recording_admin import Recorded, RecordingAdmin, wait_until

_RELEASE_S = 8.0


@pytest.fixture
def other() -> Iterator[ThreadPoolExecutor]:
    """A thread for a request that is not answered at once."""
    with ThreadPoolExecutor(2) as pool:
        yield pool


def beats_on(admin: RecordingAdmin, peer: ExecutorPeer) -> None:
    """The executor beats, and answers who asks whether it lives."""
    seen = len(admin.of("registry"))
    admin.wait_for(lambda: len(admin.of("registry")) >= seen + 3)
    assert peer.post("/beat", {})["code"] == 200
    assert peer.post("/idleBeat", {"jobId": 12345})["code"] == 200


class HangingLog:
    """The log of a run, which cannot be opened until somebody reads it: it is a FIFO."""

    def __init__(self, root: Path, log_id: int) -> None:
        self.path = root / run_log.day_of(DATE_MS) / f"{log_id}.log"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(self.path)

    def release(self) -> str:
        """Let it be written to, and return what was until it was closed."""
        return self.path.read_text()

    def let_go(self) -> None:
        """Hold up nobody any more, also if nobody has come yet."""
        os.close(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK))


def is_in_open() -> bool:
    """Whether some thread is about to open a log, or waits for that."""
    codes = [frame.f_code for frame in sys._current_frames().values()]
    return any(code.co_name == "_open" and code.co_filename == run_log.__file__ for code in codes)


def send_one(peer: ExecutorPeer, request: dict[str, Any]) -> int:
    return int(peer.post("/run", request)["code"])


def send_batch(peer: ExecutorPeer, request: dict[str, Any]) -> int:
    return int(peer.post("/runBatch", [request])["data"][0]["code"])


@pytest.mark.parametrize("send", [send_one, send_batch])
def test_while_the_log_of_a_new_run_cannot_be_made(
    make_executor: MakeExecutor,
    admin: RecordingAdmin,
    other: ThreadPoolExecutor,
    send: Callable[[ExecutorPeer, dict[str, Any]], int],
) -> None:
    admin.reply = wishes_nothing
    executor = make_executor(heartbeat_s=0.02)
    peer = started(executor)
    request = peer.trigger("x")
    hanging = HangingLog(executor.settings.log_path, request["logId"])
    code = other.submit(send, peer, request)
    try:
        wait_until(is_in_open)
        beats_on(admin, peer)
        assert not code.done()
        assert "end: code 200" in hanging.release()
    finally:
        hanging.let_go()
    assert code.result(_RELEASE_S) == 200
    assert admin.result_of(request["logId"])["handleCode"] == 200


def test_a_stop_is_told_to_the_admin_at_once_and_what_is_being_accepted_still_runs(
    make_executor: MakeExecutor, admin: RecordingAdmin, other: ThreadPoolExecutor
) -> None:
    executor = make_executor()
    peer = started(executor)
    request = peer.trigger("x")
    hanging = HangingLog(executor.settings.log_path, request["logId"])
    code = other.submit(send_one, peer, request)
    try:
        wait_until(is_in_open)
        admin.wait_for_registration()
        stopping = other.submit(executor.stop_in_background)
        admin.wait_for(lambda: bool(admin.of("registryRemove")))
        assert not code.done()
        assert "end: code 200" in hanging.release()
    finally:
        hanging.let_go()
    stopping.result(_RELEASE_S)
    assert code.result(_RELEASE_S) == 200
    assert admin.result_of(request["logId"])["handleCode"] == 200


def wishes_nothing(_: Recorded) -> bytes:
    """As admins of ours answer beats: what they say of draining is looked at each time."""
    return encode_envelope(200, value={"features": {"drain": False, "progress": False}})


def started(executor: Executor) -> ExecutorPeer:
    executor.register("x", lambda: "done")
    executor.start_in_background()
    return ExecutorPeer(executor.port)


class HangingSpool:
    """Writes to the spool's files by some threads, which wait until they are released."""

    def __init__(self, hangs: Callable[[str], bool], monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.released = threading.Event(), threading.Event()
        self._hangs = hangs
        self._pwrite = os.pwrite
        monkeypatch.setattr(os, "pwrite", self._write)

    def _write(self, descriptor: int, data: bytes, offset: int) -> int:
        if self._hangs(threading.current_thread().name):
            self.reached.set()
            assert self.released.wait(_RELEASE_S)
        return self._pwrite(descriptor, data, offset)


def is_jobs(thread_name: str) -> bool:
    return thread_name.startswith("jobwheel-job")


def is_not_jobs(thread_name: str) -> bool:
    return not is_jobs(thread_name)


@pytest.mark.parametrize("hangs", [is_jobs, is_not_jobs], ids=["a result is put", "a result is taken off"])
def test_while_results_cannot_be_kept(
    make_executor: MakeExecutor,
    admin: RecordingAdmin,
    monkeypatch: pytest.MonkeyPatch,
    hangs: Callable[[str], bool],
) -> None:
    peer = started(make_executor(heartbeat_s=0.02))
    disk = HangingSpool(hangs, monkeypatch)
    try:
        log_id = peer.run("x")
        assert disk.reached.wait(_RELEASE_S)
        beats_on(admin, peer)
    finally:
        disk.released.set()
    assert admin.result_of(log_id)["handleCode"] == 200
