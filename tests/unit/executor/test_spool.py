import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from jobwheel.executor import spool_folder
from jobwheel.executor.errors import StorageError
from jobwheel.executor.spool import Spool
from jobwheel.executor.spool_folder import lock
from jobwheel.executor.spool_segment import HEADER_BYTES, SegmentFile
from jobwheel.wire.messages import Result
from tests.support.orphans import LEAVE_A_CHILD

BIG = 1_000_000


def result(number: int, message: str | None = None) -> Result:
    return Result(number, 1000, 200, message)


def opened(root: Path, instance: str = "one", segment_bytes: int = BIG) -> Spool:
    spool = Spool(root, instance, segment_bytes)
    spool.open()
    return spool


def crash(spool: Spool) -> None:
    """Leave the files as a killed process does."""
    for descriptor in spool._locks.values():
        os.close(descriptor)
    for segment in spool._segments:
        if isinstance(segment, SegmentFile):
            segment.park()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def take_all(spool: Spool, most: int = 50) -> list[int]:
    taken: list[int] = []
    while (batch := spool.read(most, BIG)) is not None:
        taken += [item.log_id for item in batch.results]
        spool.done(batch)
    return taken


def test_results_come_out_in_order_and_leave_nothing(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    for number in range(120):
        spool.put(result(number))
    assert spool.pending == 120
    assert take_all(spool) == list(range(120))
    assert spool.pending == 0
    assert spool.read(50, BIG) is None
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_a_batch_is_bounded_by_number_and_bytes_but_has_one_at_least(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    for number in range(10):
        spool.put(result(number, "x" * 1000))
    small = spool.read(3, BIG)
    assert small is not None
    assert len(small.results) == 3
    short = spool.read(10, 2500)
    assert short is not None
    assert len(short.results) == 2
    one = spool.read(10, 10)
    assert one is not None
    assert [item.log_id for item in one.results] == [0]
    spool.close()


def test_what_is_read_but_not_done_is_read_again(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    spool.put(result(1))
    assert spool.read(50, BIG) == spool.read(50, BIG)
    assert spool.pending == 1
    spool.close()


@pytest.mark.parametrize("text", ["", "中文 \U0001f600", 'a"b\\c\n\r\t\x0c\x00\x7f', "x" * 60_000])
def test_any_text_survives(tmp_path: Path, text: str) -> None:
    spool = opened(tmp_path)
    spool.put(result(1, text))
    spool.put(result(2, text))
    spool.close()
    other = opened(tmp_path, "two")
    batch = other.read(50, 100)
    assert batch is not None
    assert batch.results[0].message == text
    assert take_all(other) == [1, 2]
    other.close()


@pytest.mark.parametrize("segment_bytes", [300, BIG])
def test_a_killed_process_leaves_its_results_to_the_next(tmp_path: Path, segment_bytes: int) -> None:
    first = opened(tmp_path, segment_bytes=segment_bytes)
    for number in range(40):
        first.put(result(number))
    batch = first.read(7, BIG)
    assert batch is not None
    first.done(batch)
    sent = len(batch.results)
    crash(first)
    second = opened(tmp_path, "two")
    assert second.pending == 40 - sent
    second.put(result(100))
    assert take_all(second) == [*range(sent, 40), 100]
    assert [path.name for path in tmp_path.iterdir()] == ["two"]
    second.close()
    assert list(tmp_path.iterdir()) == []


def test_the_spool_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    first = opened(tmp_path, "one")
    first.put(result(1))
    second = opened(tmp_path, "two")
    assert second.pending == 0
    first.close()
    assert second.adopt() == 1
    assert take_all(second) == [1]
    second.close()


LEAVES_RESULTS_AND_A_CHILD = f"""{LEAVE_A_CHILD}
import pathlib
from jobwheel.executor.spool import Spool
from jobwheel.wire.messages import Result

spool = Spool(pathlib.Path(sys.argv[1]), "former")
spool.open()
spool.put(Result(1, 1000, 200, None))
leave_a_child()
"""


def test_a_forked_child_that_outlives_its_process_keeps_no_results(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LEAVES_RESULTS_AND_A_CHILD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.wait(20) == -signal.SIGKILL
        # The child lives until its input ends, with the block.
        spool = opened(tmp_path, "two")
        assert take_all(spool) == [1]
        spool.close()


def test_a_line_that_was_torn_is_skipped_and_the_others_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = opened(tmp_path)
    for number in range(3):
        first.put(result(number))
    crash(first)
    (file,) = tmp_path.glob("one/*.spool")
    data = file.read_bytes().splitlines(keepends=True)
    data[2] = b"\x00" * (len(data[2]) - 1) + b"\n"
    file.write_bytes(b"".join(data) + b'{"log_id":9,"log')
    second = opened(tmp_path, "two")
    assert second.pending == 4
    assert take_all(second) == [0, 2]
    assert caplog.text.count("spool.line_unreadable") == 2
    second.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("header", [b"", b"x" * HEADER_BYTES, b"%23d\n" % 10**9])
def test_a_header_that_is_torn_or_beyond_the_end(tmp_path: Path, header: bytes) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "00000001.spool").write_bytes(header)
    spool = opened(tmp_path)
    assert spool.pending == 0
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_many_segments_are_removed_one_by_one(tmp_path: Path) -> None:
    spool = opened(tmp_path, segment_bytes=200)
    for number in range(30):
        spool.put(result(number))
    files = len(list(tmp_path.glob("one/*.spool")))
    assert files > 5
    taken: list[int] = []
    while (batch := spool.read(5, BIG)) is not None:
        taken += [item.log_id for item in batch.results]
        spool.done(batch)
        left = len(list(tmp_path.glob("one/*.spool")))
        assert left <= files
        files = left
    assert taken == list(range(30))
    assert files <= 1
    spool.close()


def test_moved_to_the_end(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    for number in range(3):
        spool.put(result(number))
    batch = spool.read(1, BIG)
    assert batch is not None
    spool.move_to_end(batch)
    assert spool.pending == 3
    assert take_all(spool) == [1, 2, 0]
    spool.close()


def test_a_disk_that_refuses_keeps_results_in_memory_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spool = opened(tmp_path)
    spool.put(result(1))
    written = os.pwrite

    def full(descriptor: int, data: bytes, offset: int) -> int:
        written(descriptor, data[:5], offset)
        return 5

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        spool.put(result(2))
        spool.put(result(3))
    spool.put(result(4))
    assert spool.pending == 4
    assert sorted(take_all(spool)) == [1, 2, 3, 4]
    assert caplog.text.count("spool.cannot_write") == 1
    spool.close()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="log_path"):
        opened(tmp_path / "file")


def test_a_result_after_the_close_waits_for_the_next_process(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.close()
    first.put(result(1))
    second = opened(tmp_path, "two")
    assert take_all(second) == [1]
    second.close()


def test_a_result_after_the_close_is_adopted_whole_or_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool, other = opened(tmp_path), opened(tmp_path, "other")
    spool.close()
    append = SegmentFile.append

    def late(segment: SegmentFile, item: Result) -> None:
        other.adopt()
        append(segment, item)

    monkeypatch.setattr(SegmentFile, "append", late)
    spool.put(result(7))
    other.adopt()
    assert take_all(other) == [7]
    other.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("whole", [False, True])
def test_of_a_process_that_dies_amid_a_result_after_the_close_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, whole: bool
) -> None:
    spool = opened(tmp_path)
    spool.close()
    append = SegmentFile.append

    def dying(segment: SegmentFile, item: Result) -> None:
        if whole:
            append(segment, item)
        raise KeyboardInterrupt

    monkeypatch.setattr(SegmentFile, "append", dying)
    with pytest.raises(KeyboardInterrupt):
        spool.put(result(7))
    monkeypatch.undo()
    other = opened(tmp_path, "other")
    assert take_all(other) == ([7] if whole else [])
    other.adopt()
    other.close()
    assert list(tmp_path.iterdir()) == []
    assert "spool.cannot_remove" not in caplog.text


def test_a_folder_that_cannot_be_removed_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    left = tmp_path / "gone" / "00000001.draft"
    left.parent.mkdir(parents=True)
    left.write_text("not a spool's")
    spool = opened(tmp_path)
    for _ in range(3):
        assert spool.adopt() == 0
    assert caplog.text.count("spool.cannot_remove") == 1
    assert left.exists()
    spool.close()


def test_what_an_admin_took_while_the_spool_was_closed_waits_for_the_next_process(tmp_path: Path) -> None:
    spool, before = opened(tmp_path), open_files()
    spool.put(result(1))
    batch = spool.read(50, BIG)
    assert batch is not None
    spool.close()
    spool.done(batch)
    spool.move_to_end(batch)
    assert open_files() < before
    second = opened(tmp_path, "two")
    assert take_all(second) == [1]
    second.close()
    assert list(tmp_path.iterdir()) == []


def test_how_many_wait_is_known_while_the_disk_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = opened(tmp_path)
    spool.put(result(1))
    hangs, released, append = threading.Event(), threading.Event(), SegmentFile.append

    def hanging(segment: SegmentFile, item: Result) -> None:
        hangs.set()
        assert released.wait(8)
        append(segment, item)

    monkeypatch.setattr(SegmentFile, "append", hanging)
    thread = threading.Thread(target=spool.put, args=(result(2),))
    thread.start()
    assert hangs.wait(8)
    assert spool.pending == 1
    released.set()
    thread.join()
    assert spool.pending == 2
    spool.close()


def test_a_spool_that_is_closed_takes_nothing_over(tmp_path: Path) -> None:
    spool, neighbour = opened(tmp_path), opened(tmp_path, "neighbour")
    neighbour.put(result(7))
    neighbour.close()
    spool.close()
    assert spool.adopt() == 0
    next_one = opened(tmp_path, "next")
    assert take_all(next_one) == [7]
    next_one.close()


def test_sync_and_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    spool = opened(tmp_path)
    noticed: list[int] = []
    spool.on_put = lambda: noticed.append(1)
    spool.sync()
    assert synced == []
    spool.put(result(1))
    spool.sync()
    assert len(synced) == 1
    assert noticed == [1]
    spool.close()


def test_a_sync_covers_the_files_that_were_filled_since_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[Path] = set()
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.add(Path(f"/proc/self/fd/{descriptor}").readlink()))
    spool = opened(tmp_path, segment_bytes=200)
    for number in range(30):
        spool.put(result(number))
    spool.sync()
    assert synced == set(tmp_path.glob("one/*.spool"))
    assert len(synced) > 5
    spool.close()


def test_few_files_are_open_however_many_there_are(tmp_path: Path) -> None:
    before = open_files()
    first = opened(tmp_path, segment_bytes=200)
    for number in range(300):
        first.put(result(number))
    assert len(list(tmp_path.glob("one/*.spool"))) > 60
    first.sync()
    assert open_files() <= before + 3
    crash(first)
    second = opened(tmp_path, "two")
    assert open_files() <= before + 3
    assert take_all(second, most=1) == list(range(300))
    second.close()
    assert open_files() == before


def test_a_folder_that_is_being_looked_at_by_another_process_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = fcntl.flock
    refusals = [BlockingIOError(), BlockingIOError()]

    def busy(descriptor: int, operation: int) -> Any:
        if refusals:
            raise refusals.pop()
        return locked(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", busy)
    spool = opened(tmp_path)
    spool.put(result(1))
    assert take_all(spool) == [1]
    spool.close()


def test_a_folder_that_another_process_looks_at_for_long_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one does whose disk is slow: a hundred tries in two milliseconds, and an executor did not start."""
    (tmp_path / "one").mkdir(parents=True)
    other = lock(tmp_path / "one")
    waited_s = list[float]()

    def pause(delay_s: float) -> None:
        waited_s.append(delay_s)
        if sum(waited_s) > 1 and sum(waited_s[:-1]) <= 1:
            os.close(other)

    monkeypatch.setattr(spool_folder, "_pause", pause)
    spool = opened(tmp_path)
    spool.put(result(1))
    assert take_all(spool) == [1]
    spool.close()


def test_it_tells_whose_results_it_holds(tmp_path: Path) -> None:
    former = opened(tmp_path, "former")
    former.put(result(1))
    crash(former)
    spool = opened(tmp_path, segment_bytes=200)
    for number in range(2, 40):
        spool.put(result(number, "text"))
    assert spool.holding({1, 2, 39, 40}) == {1, 2, 39}
    batch = spool.read(1, BIG)
    assert batch is not None
    spool.done(batch)
    assert spool.holding(range(50)) == set(range(2, 40))
    assert take_all(spool) == list(range(2, 40))
    assert spool.holding(range(50)) == set()
    spool.close()
    assert spool.holding(range(50)) == set()


def test_it_tells_whose_results_it_holds_in_memory(tmp_path: Path) -> None:
    spool = opened(tmp_path / "spool")
    (tmp_path / "spool" / "one" / "00000001.spool").mkdir()
    spool.put(result(7))
    assert spool.holding([6, 7]) == {7}
    assert take_all(spool) == [7]
    (tmp_path / "spool" / "one" / "00000001.spool").rmdir()
    spool.close()


def left_by(root: Path, *numbers: int) -> list[Path]:
    """Files of a process that is gone, one for each result."""
    former = opened(root, "former", segment_bytes=1)
    for number in numbers:
        former.put(result(number))
    crash(former)
    return sorted(root.glob("former/*.spool"))


def test_a_file_that_somebody_removed_holds_up_no_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, _ = left_by(tmp_path, 1, 2)
    spool = opened(tmp_path)
    spool.put(result(3))
    first.unlink()
    assert take_all(spool) == [2, 3]
    assert spool.pending == 0
    assert caplog.text.count("spool.results_lost") == 1
    assert str(first) in caplog.text
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_read_now_holds_up_no_others_and_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = left_by(tmp_path, 1, 2)
    spool = opened(tmp_path)
    opens = os.open

    def fails(path: Any, *rest: Any) -> int:
        if path == first:
            raise OSError(errno.EIO, "broken", str(path))
        return opens(path, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", fails)
        batch = spool.read(10, BIG)
        assert batch is not None
        assert [each.log_id for each in batch.results] == [2]
        spool.done(batch)
        with pytest.raises(OSError, match="broken"):
            spool.read(10, BIG)
    assert take_all(spool) == [1]
    spool.close()
