from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from jobwheel.executor.errors import AdminRefusedError
from jobwheel.executor.progress import ProgressSender
from jobwheel.kernel.fake_clock import FakeClock, settle
from jobwheel.wire.errors import UncertainError, UnreachableError
from jobwheel.wire.messages import Envelope, Progress


class Admins:
    """The admins, in memory."""

    def __init__(self) -> None:
        self.got: list[tuple[str, list[Progress]]] = []
        self.answer: Exception | None = None

    async def progress(self, admin: str, progress: list[Progress]) -> Envelope:
        self.got.append((admin, progress))
        if self.answer is not None:
            raise self.answer
        return Envelope(200)


class Bench:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.admins = Admins()
        self.sender = ProgressSender(self.admins, self.clock)

    @property
    def got(self) -> list[tuple[str, list[Progress]]]:
        return self.admins.got


@asynccontextmanager
async def working() -> AsyncIterator[Bench]:
    bench = Bench()
    await bench.sender.start()
    bench.sender.want("http://a", wanted=True)
    try:
        yield bench
    finally:
        await bench.sender.stop()


async def test_of_each_run_the_latest_is_sent_once_a_second_at_most() -> None:
    async with working() as bench:
        bench.sender.report(1, 0.1, "first")
        await settle()
        assert bench.got == [("http://a", [Progress(1, 0.1, "first")])]
        for tenth in range(2, 10):
            bench.sender.report(1, tenth / 10, f"step {tenth}")
        bench.sender.report(2, 0.5, "")
        await bench.clock.advance(0.9)
        assert len(bench.got) == 1
        await bench.clock.advance(0.1)
        assert bench.got[1:] == [("http://a", [Progress(1, 0.9, "step 9"), Progress(2, 0.5, "")])]
        await bench.clock.advance(60)
        assert len(bench.got) == 2


async def test_only_admins_that_want_it_get_it() -> None:
    async with working() as bench:
        bench.sender.want("http://b", wanted=True)
        bench.sender.want("http://a", wanted=False)
        bench.sender.report(1, 0.1, "")
        await settle()
        assert [admin for admin, _ in bench.got] == ["http://b"]
        bench.sender.want("http://b", wanted=False)
        bench.sender.report(1, 0.2, "")
        await bench.clock.advance(5)
        assert len(bench.got) == 1


@pytest.mark.parametrize(
    "error",
    [
        lambda: UnreachableError("http://a", "refused"),
        lambda: UncertainError("http://a", "time-out"),
        lambda: AdminRefusedError("http://a", 500, "no", readable=True),
    ],
)
async def test_what_an_admin_does_not_take_is_lost(error: Callable[[], Exception]) -> None:
    async with working() as bench:
        bench.admins.answer = error()
        bench.sender.report(1, 0.1, "")
        await bench.clock.advance(30)
        assert len(bench.got) == 1
        bench.admins.answer = None
        bench.sender.report(1, 0.2, "")
        await settle()
        assert bench.got[1:] == [("http://a", [Progress(1, 0.2, "")])]
        assert bench.sender.crashes == {}


async def test_long_words_are_cut() -> None:
    async with working() as bench:
        bench.sender.report(1, 0.1, "x" * 5000)
        await settle()
        assert bench.got[0][1][0].text == "x" * 1000


async def test_before_the_start_and_after_the_stop_nothing_is_sent() -> None:
    bench = Bench()
    bench.sender.want("http://a", wanted=True)
    bench.sender.report(1, 0.1, "")
    await bench.sender.start()
    await settle()
    await bench.sender.stop()
    bench.sender.report(1, 0.2, "")
    await settle()
    assert bench.got == []


async def test_a_text_that_no_utf_8_can_carry_is_sent_all_the_same() -> None:
    async with working() as bench:
        bench.sender.report(1, 0.1, "file \udcff")
        await settle()
        assert bench.got == [("http://a", [Progress(1, 0.1, "file \ufffd")])]
