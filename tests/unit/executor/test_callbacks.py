import asyncio
import functools
import json
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jobwheel.executor.callbacks import MOST_PER_BATCH, CallbackSender
from jobwheel.executor.dead_letters import DeadLetters
from jobwheel.executor.disk_threads import Arguments, DiskThreads, Returned
from jobwheel.executor.errors import AdminRefusedError
from jobwheel.executor.ledger import RunLedger, RunState
from jobwheel.executor.spool import Spool
from jobwheel.kernel import fake_clock
from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.fake_clock import FakeClock, settle
from jobwheel.wire.errors import UncertainError, UnreachableError
from jobwheel.wire.messages import Envelope, Result
from tests.support.eventually import eventually

Answer = Callable[[str, list[Result]], Envelope]


class Admins:
    """The admins, in memory: `answer` decides, `calls` remembers (admin, log ids)."""

    def __init__(self) -> None:
        self.answer: Answer = succeed
        self.calls: list[tuple[str, list[int]]] = []

    async def callback(self, admin: str, results: list[Result]) -> Envelope:
        self.calls.append((admin, [result.log_id for result in results]))
        return self.answer(admin, results)


def succeed(admin: str, results: list[Result]) -> Envelope:
    return Envelope(200)


def away(admin: str, results: list[Result]) -> Envelope:
    raise UnreachableError(admin, "refused")


def slow(admin: str, results: list[Result]) -> Envelope:
    raise UncertainError(admin, "time-out")


def refuse(admin: str, results: list[Result]) -> Envelope:
    raise AdminRefusedError(admin, 500, "database is down", readable=True)


def proxy(admin: str, results: list[Result]) -> Envelope:
    raise AdminRefusedError(admin, 502, "not an admin's answer", readable=False)


def refuse_five(admin: str, results: list[Result]) -> Envelope:
    """One result is poison."""
    return refuse(admin, results) if any(item.log_id == 5 for item in results) else succeed(admin, results)


class NoThread(DiskThreads):
    """Does at once what it is given: a test has the loop, and what it asks for next is about what was done."""

    async def do(
        self, function: Callable[Arguments, Returned], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Returned:
        return function(*args, **kwargs)


class Bench:
    def __init__(self, folder: Path, admins: tuple[str, ...] = ("a",)) -> None:
        self.clock = FakeClock()
        self.spool = Spool(folder / "spool", "one")
        self.spool.open()
        self.ledger = RunLedger(self.clock)
        self.admins = Admins()
        letters = DeadLetters(folder / "dead-letters.jsonl", self.clock)
        backoff = Backoff(0.2, 30, 0)
        self.sender = CallbackSender(self.spool, self.ledger, self.admins, admins, letters, self.clock, backoff)
        self.sender._disk = NoThread("unused", 1)

    def put(self, *log_ids: int) -> None:
        for log_id in log_ids:
            self.ledger.accept((log_id, 0))
            self.spool.put(Result(log_id, 0, 200))
            self.ledger.finish((log_id, 0))
        self.sender.notify()

    async def put_and_settle(self, *log_ids: int) -> None:
        self.put(*log_ids)
        await settle()


@asynccontextmanager
async def working(folder: Path, *admins: str) -> AsyncIterator[Bench]:
    bench = Bench(folder, admins or ("a",))
    await bench.sender.start()
    try:
        yield bench
    finally:
        await bench.sender.stop()
        bench.spool.close()


async def test_results_are_sent_in_one_batch_and_gone_after_the_reply(tmp_path: Path) -> None:
    async with working(tmp_path) as bench:
        await bench.put_and_settle(1, 2, 3)
        assert bench.admins.calls == [("a", [1, 2, 3])]
        assert bench.spool.pending == 0
        assert bench.ledger.state((1, 0)) is RunState.REPORTED


async def test_a_batch_is_bounded(tmp_path: Path) -> None:
    async with working(tmp_path) as bench:
        await bench.put_and_settle(*range(MOST_PER_BATCH * 2 + 1))
        assert [len(ids) for _, ids in bench.admins.calls] == [MOST_PER_BATCH, MOST_PER_BATCH, 1]


async def test_results_that_come_faster_than_they_are_sent_come_together(tmp_path: Path) -> None:
    async with working(tmp_path) as bench:

        def busy(admin: str, results: list[Result]) -> Envelope:
            # Another one is there by the time of the answer.
            bench.put(100 + len(bench.admins.calls))
            return succeed(admin, results)

        bench.admins.answer = busy
        await bench.put_and_settle(1)
        assert bench.admins.calls == [("a", [1])]
        await bench.put_and_settle(2, 3)
        assert len(bench.admins.calls) == 1
        bench.admins.answer = succeed
        await bench.clock.advance(0.025)
        assert bench.admins.calls[1:] == [("a", [101, 2, 3])]
        # A single one that comes while nothing is under way does not wait.
        await bench.put_and_settle(4)
        assert bench.admins.calls[2:] == [("a", [4])]


async def test_the_stop_does_not_wait_for_more_to_come_together(tmp_path: Path) -> None:
    async with working(tmp_path) as bench:

        def busy(admin: str, results: list[Result]) -> Envelope:
            bench.put(2)
            return succeed(admin, results)

        bench.admins.answer = busy
        await bench.put_and_settle(1)
        assert bench.admins.calls == [("a", [1])]
        bench.admins.answer = succeed
        await bench.sender.flush(5)
        assert bench.admins.calls == [("a", [1]), ("a", [2])]
        assert not bench.spool.pending


async def test_what_was_delivered_last_is_put_away_at_a_stop_that_has_no_time(tmp_path: Path) -> None:
    async with working(tmp_path) as bench:

        def busy(admin: str, results: list[Result]) -> Envelope:
            bench.put(2)
            return succeed(admin, results)

        bench.admins.answer = busy
        await bench.put_and_settle(1)
        bench.admins.answer = away
        await bench.sender.flush(0)
        # Only what nobody has is left for the next start.
        assert bench.spool.pending == 1


@pytest.mark.parametrize("answer", [away, slow, proxy])
async def test_without_a_success_nothing_is_lost_and_it_is_tried_again_after_a_growing_pause(
    tmp_path: Path, answer: Answer
) -> None:
    async with working(tmp_path) as bench:
        bench.admins.answer = answer
        await bench.put_and_settle(1, 2)
        assert len(bench.admins.calls) == 1
        assert bench.ledger.state((1, 0)) is RunState.UNREPORTED
        for pause, tries in [(0.19, 1), (0.02, 2), (0.38, 2), (0.02, 3), (600, 27)]:
            await bench.clock.advance(pause)
            assert len(bench.admins.calls) == tries
        assert bench.spool.pending == 2
        bench.admins.answer = succeed
        await bench.clock.advance(31)
        assert bench.spool.pending == 0
        delivered = [log_id for _, ids in bench.admins.calls[-2:] for log_id in ids]
        assert sorted(set(delivered)) == [1, 2]


async def test_new_results_do_not_end_the_pause(tmp_path: Path) -> None:
    async with working(tmp_path) as bench:
        bench.admins.answer = away
        await bench.put_and_settle(1)
        await bench.put_and_settle(2, 3)
        assert len(bench.admins.calls) == 1


async def test_an_admin_that_answers_a_beat_ends_the_pause(tmp_path: Path) -> None:
    async with working(tmp_path) as bench:
        bench.admins.answer = away
        await bench.put_and_settle(1)
        await bench.clock.advance(60)
        bench.admins.answer = succeed
        bench.sender.retry_now()
        await settle()
        assert bench.spool.pending == 0


async def test_admins_are_tried_in_turn_and_the_one_that_answered_is_asked_first(tmp_path: Path) -> None:
    async with working(tmp_path, "a", "b", "c") as bench:
        bench.admins.answer = lambda admin, results: succeed(admin, results) if admin == "b" else away(admin, results)
        await bench.put_and_settle(1)
        await bench.put_and_settle(2)
        assert bench.admins.calls == [("a", [1]), ("b", [1]), ("b", [2])]
        bench.admins.answer = lambda admin, results: succeed(admin, results) if admin == "c" else refuse(admin, results)
        await bench.put_and_settle(3)
        assert bench.admins.calls[3:] == [("b", [3]), ("a", [3]), ("c", [3])]


async def test_one_result_that_no_admin_takes_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async with working(tmp_path) as bench:
        bench.admins.answer = refuse_five
        await bench.put_and_settle(*range(20))
        await bench.clock.advance(120)
        assert bench.spool.pending == 1
        states = {log_id: bench.ledger.state((log_id, 0)) for log_id in range(20)}
        assert [log_id for log_id, state in states.items() if state is RunState.UNREPORTED] == [5]
        await bench.put_and_settle(100, 101)
        await bench.clock.advance(1)
        assert bench.spool.pending == 1
        bench.admins.answer = succeed
        await bench.clock.advance(31)
        assert bench.spool.pending == 0


async def test_an_admin_that_refuses_everything_is_not_asked_all_the_time(tmp_path: Path) -> None:
    async with working(tmp_path) as bench:
        bench.admins.answer = refuse
        await bench.put_and_settle(*range(1000))
        for log_id in range(2000, 2060):
            await bench.put_and_settle(log_id)
            await bench.clock.advance(10)
        assert len(bench.admins.calls) < 50
        bench.admins.answer = succeed
        await bench.clock.advance(31)
        assert bench.spool.pending == 0


async def test_a_slow_admin_gets_less_at_once_and_more_again_later(tmp_path: Path) -> None:
    async with working(tmp_path) as bench:
        bench.admins.answer = lambda admin, results: (
            slow(admin, results) if len(results) > 30 else succeed(admin, results)
        )
        await bench.put_and_settle(*range(100))
        await bench.clock.advance(30)
        assert bench.spool.pending == 0
        bench.admins.answer = succeed
        await bench.put_and_settle(*range(1000, 1300))
        await settle()
        assert max(len(ids) for _, ids in bench.admins.calls[-4:]) == MOST_PER_BATCH


async def test_an_admin_that_answers_late_is_passed_over_and_asked_when_the_others_do_not_answer(
    tmp_path: Path,
) -> None:
    async with working(tmp_path, "a", "b") as bench:
        bench.admins.answer = lambda admin, results: succeed_after(bench.clock, 1.1 if admin == "a" else 0.9)
        for log_id in range(3):
            await bench.put_and_settle(log_id)
        bench.admins.answer = lambda admin, results: succeed(admin, results) if admin == "a" else away(admin, results)
        await bench.put_and_settle(3)
        assert bench.admins.calls == [("a", [0]), ("b", [1]), ("b", [2]), ("b", [3]), ("a", [3])]


def succeed_after(clock: FakeClock, seconds: float) -> Envelope:
    clock._monotonic_s += seconds
    return Envelope(200)


def letters_in(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "dead-letters.jsonl").read_text().splitlines()]


async def test_what_an_admin_names_as_bad_in_a_success_becomes_a_dead_letter(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with working(tmp_path) as bench:
        bench.admins.answer = lambda admin, results: Envelope(200, msg="item 1: handleCode: is missing; item 9: x")
        await bench.put_and_settle(7, 8, 9)
        assert bench.spool.pending == 0
        assert bench.ledger.state((8, 0)) is RunState.REPORTED
        (letter,) = letters_in(tmp_path)
        assert (letter["logId"], letter["handleCode"], letter["reason"]) == (8, 200, "handleCode: is missing")
        assert caplog.text.count("callback.dead_letter") == 1


async def test_words_of_another_admin_in_a_success_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with working(tmp_path) as bench:
        bench.admins.answer = lambda admin, results: Envelope(200, msg="log repeat callback")
        await bench.put_and_settle(1)
        assert bench.spool.pending == 0
        assert "log repeat callback" in caplog.text
        assert not (tmp_path / "dead-letters.jsonl").exists()


async def test_what_is_refused_for_an_hour_while_all_else_is_taken_becomes_a_dead_letter(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with working(tmp_path) as bench:
        bench.admins.answer = refuse_five
        await bench.put_and_settle(5)
        for log_id in range(100, 159):
            await bench.put_and_settle(log_id)
            await bench.clock.advance(60)
        assert bench.ledger.state((5, 0)) is RunState.UNREPORTED
        assert not (tmp_path / "dead-letters.jsonl").exists()
        for log_id in range(200, 205):
            await bench.put_and_settle(log_id)
            await bench.clock.advance(60)
        assert bench.spool.pending == 0
        assert [letter["logId"] for letter in letters_in(tmp_path)] == [5]
        assert letters_in(tmp_path)[0]["reason"] == "database is down"
        assert caplog.text.count("callback.dead_letter") == 1
        await bench.put_and_settle(300)
        assert bench.admins.calls[-1] == ("a", [300])


async def test_what_one_admin_refuses_waits_for_another_that_is_away(tmp_path: Path) -> None:
    async with working(tmp_path, "a", "b") as bench:
        bench.admins.answer = lambda admin, results: (refuse_five if admin == "a" else away)(admin, results)
        await bench.put_and_settle(5)
        for log_id in range(100, 170):
            await bench.put_and_settle(log_id)
            await bench.clock.advance(60)
        assert bench.spool.pending == 1
        bench.admins.answer = lambda admin, results: (refuse_five if admin == "a" else succeed)(admin, results)
        await bench.clock.advance(31)
        assert bench.spool.pending == 0
        assert not (tmp_path / "dead-letters.jsonl").exists()


@pytest.mark.parametrize("other", ["refuses too", "is away"])
async def test_admins_that_take_nothing_for_a_day_make_no_dead_letter(tmp_path: Path, other: str) -> None:
    async with working(tmp_path, "a", "b") as bench:
        second = refuse if other == "refuses too" else away
        bench.admins.answer = lambda admin, results: (refuse if admin == "a" else second)(admin, results)
        for log_id in range(24):
            await bench.put_and_settle(log_id)
            await bench.clock.advance(3600)
        bench.admins.answer = succeed
        await bench.clock.advance(31)
        assert bench.spool.pending == 0
        assert not (tmp_path / "dead-letters.jsonl").exists()


def test_the_file_of_dead_letters_is_bounded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "dead-letters.jsonl"
    letters = DeadLetters(path, FakeClock(), most_bytes=1000)
    for log_id in range(50):
        letters.add(Result(log_id, 0, 200, "done"), "http://a", "no such run")
    older = path.with_name("dead-letters.jsonl.1")
    assert path.stat().st_size <= 1000
    assert older.stat().st_size <= 1000
    assert letters_in(tmp_path)[-1]["logId"] == 49
    path.unlink()
    path.mkdir()
    letters.add(Result(50, 0, 200), "http://a", "no such run")
    assert "callback.dead_letter_not_written log_id=50" in caplog.text


async def test_the_results_of_a_day_without_admins_are_all_delivered_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = 100_000
    # A day has nearly three thousand tries, each of which needs a few turns alone.
    monkeypatch.setattr(fake_clock, "settle", functools.partial(settle, 8))
    async with working(tmp_path, "a", "b") as bench:
        bench.ledger = RunLedger(bench.clock, most_remembered=1000)
        bench.sender._ledger = bench.ledger
        bench.admins.answer = away
        bench.put(0)
        await settle()
        before = memory_in_use()
        for log_id in range(1, results):
            bench.spool.put(Result(log_id, 0, 200, "done"))
        bench.sender.notify()
        await bench.clock.advance(86_400)
        rounds = len(bench.admins.calls) // 2
        bench.admins.calls.clear()
        assert memory_in_use() - before < 16 * 2**20
        bench.admins.answer = succeed
        await bench.clock.advance(31)
        await eventually(lambda: bench.spool.pending == 0)
        assert 86_400 / 30 <= rounds < 86_400 / 30 + 20
        delivered = [log_id for _, ids in bench.admins.calls for log_id in ids]
        assert delivered == list(range(results))
        # A batch does not reach over the end of a file.
        assert len(bench.admins.calls) < results / MOST_PER_BATCH + 20


def memory_in_use() -> int:
    """Of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def test_an_outage_is_logged_when_it_begins_and_when_it_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with working(tmp_path) as bench:
        bench.admins.answer = away
        await bench.put_and_settle(1)
        await bench.clock.advance(600)
        assert caplog.text.count("callback.failed") == 1
        bench.admins.answer = succeed
        await bench.clock.advance(31)
        assert caplog.text.count("callback.regained") == 1


async def test_what_an_earlier_process_left_is_sent(tmp_path: Path) -> None:
    earlier = Spool(tmp_path / "spool", "zero")
    earlier.open()
    earlier.put(Result(9, 0, 200))
    earlier.close()
    async with working(tmp_path) as bench:
        await settle()
        assert bench.admins.calls == [("a", [9])]


async def test_what_a_neighbour_left_is_sent_by_a_process_that_is_never_idle(tmp_path: Path) -> None:
    async with working(tmp_path) as bench:
        neighbour = Spool(tmp_path / "spool", "neighbour")
        neighbour.open()
        neighbour.put(Result(100, 0, 200))
        neighbour.close()
        for number in range(7):
            await bench.put_and_settle(number)
            await bench.clock.advance(10)
        await eventually(lambda: bench.spool.pending == 0 and [100] in [ids for _, ids in bench.admins.calls])


class SlowThread(NoThread):
    """What was done is known only when the test says so, and then after some turns of the loop."""

    def __init__(self) -> None:
        super().__init__("unused", 1)
        self.known = asyncio.Event()

    async def do(
        self, function: Callable[Arguments, Returned], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Returned:
        returned = function(*args, **kwargs)
        await self.known.wait()
        await settle(10)
        return returned


async def test_flush_is_not_over_when_a_look_before_it_found_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    disk = bench.sender._disk = SlowThread()
    await bench.sender.start()
    await settle()
    bench.put(1)
    flushing = asyncio.create_task(bench.sender.flush(5))
    await settle()
    disk.known.set()
    await flushing
    assert bench.admins.calls == [("a", [1])]
    assert bench.spool.pending == 0
    await bench.sender.stop()
    bench.spool.close()


async def test_flush_sends_what_there_is(tmp_path: Path) -> None:
    async with working(tmp_path) as bench:
        bench.put(*range(500))
        await bench.sender.flush(5)
        assert bench.spool.pending == 0


async def test_flush_ends_the_pause_and_gives_up_soon_when_nobody_answers(tmp_path: Path) -> None:
    async with working(tmp_path) as bench:
        bench.admins.answer = away
        await bench.put_and_settle(1)
        await bench.clock.advance(600)
        tried = len(bench.admins.calls)
        began = bench.clock.monotonic()
        flushing = asyncio.create_task(bench.sender.flush(20))
        for _ in range(10):
            await bench.clock.advance(0.2)
        await flushing
        assert bench.clock.monotonic() - began < 3
        assert len(bench.admins.calls) == tried + 3
        assert bench.spool.pending == 1
