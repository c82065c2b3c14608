import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from jobwheel.executor.errors import AdminRefusedError
from jobwheel.executor.registration import Registration
from jobwheel.executor.settings import resolve
from jobwheel.kernel.fake_clock import FakeClock, settle
from jobwheel.wire.errors import UncertainError, UnreachableError
from jobwheel.wire.messages import Envelope, Features

FEATURES = Features(instance="this")


class Admins:
    """The admins, in memory: each beat is answered by `answer`, once `go` is set."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.answer: Exception | None = None
        self.go = asyncio.Event()
        self.go.set()

    async def register(self, admin: str, address: str, features: Features) -> Envelope:
        self.calls.append(f"beat {admin}")
        await self.go.wait()
        if self.answer is not None:
            raise self.answer
        return Envelope(200)

    async def remove(self, admin: str, address: str) -> Envelope:
        self.calls.append(f"remove {admin}")
        return Envelope(200)


class Bench:
    def __init__(self, *admins: str) -> None:
        self.clock = FakeClock()
        self.admins = Admins()
        self.contacts = 0
        self.silences = 0
        self.ask_soon = False
        settings = resolve({"app_name": "demo", "admin": list(admins)}, {})
        self.registration = Registration(
            self.admins, settings, "http://me/", lambda: FEATURES, self.clock, self._on_contact
        )

    def _on_contact(self, admin: str, answer: Envelope | None) -> bool:
        self.contacts += answer is not None
        self.silences += answer is None
        return self.ask_soon


@asynccontextmanager
async def working(*admins: str) -> AsyncIterator[Bench]:
    bench = Bench(*(admins or ("http://a",)))
    await bench.registration.start()
    await settle()
    try:
        yield bench
    finally:
        bench.admins.go.set()
        await bench.registration.stop()


async def test_a_beat_each_thirty_seconds() -> None:
    async with working() as bench:
        for beats in range(1, 5):
            assert bench.admins.calls == ["beat http://a"] * beats
            await bench.clock.advance(29.9)
            assert bench.admins.calls == ["beat http://a"] * beats
            await bench.clock.advance(0.1)
        assert bench.registration.registered == ["http://a"]
        assert bench.contacts == 5


async def test_after_a_failure_it_is_tried_sooner_and_never_later_than_a_beat() -> None:
    async with working() as bench:
        bench.admins.answer = UnreachableError("http://a", "refused")
        await bench.clock.advance(30)
        assert bench.registration.registered == []
        assert len(bench.admins.calls) == 2
        await bench.clock.advance(1)
        assert len(bench.admins.calls) == 3
        await bench.clock.advance(600)
        bench.admins.answer = None
        await bench.clock.advance(30)
        assert bench.registration.registered == ["http://a"]


async def test_an_admin_that_drains_it_is_asked_each_second() -> None:
    # It refuses runs as long as it does not know that it is drained no more.
    async with working() as bench:
        bench.ask_soon = True
        await bench.clock.advance(30)
        for beats in range(3, 6):
            await bench.clock.advance(1)
            assert len(bench.admins.calls) == beats
        bench.ask_soon = False
        await bench.clock.advance(1)
        await bench.clock.advance(29.9)
        assert len(bench.admins.calls) == 6


async def test_it_is_told_that_an_admin_does_not_answer() -> None:
    async with working() as bench:
        bench.admins.answer = UnreachableError("http://a", "refused")
        await bench.clock.advance(30)
        assert (bench.contacts, bench.silences) == (1, 1)


async def test_an_admin_that_does_not_answer_delays_no_other() -> None:
    async with working("http://a", "http://b") as bench:
        bench.admins.go.clear()
        await bench.clock.advance(30)
        assert bench.admins.calls.count("beat http://a") == 2
        assert bench.admins.calls.count("beat http://b") == 2


async def test_a_beat_under_way_is_waited_for_before_the_removal() -> None:
    async with working() as bench:
        bench.admins.go.clear()
        await bench.clock.advance(30)
        stopping = asyncio.create_task(bench.registration.stop())
        await bench.clock.advance(2.9)
        assert bench.admins.calls == ["beat http://a"] * 2
        bench.admins.go.set()
        await settle()
        assert bench.admins.calls == ["beat http://a"] * 2 + ["remove http://a"]
        await stopping


async def test_a_beat_that_is_not_answered_is_waited_for_no_longer_than_the_time_out() -> None:
    async with working() as bench:
        bench.admins.go.clear()
        await bench.clock.advance(30)
        stopping = asyncio.create_task(bench.registration.stop())
        await bench.clock.advance(3.1)
        assert bench.admins.calls[-1] == "remove http://a"
        await stopping


@pytest.mark.parametrize(
    ("answer", "removed"),
    [
        (None, True),
        (UncertainError("http://a", "time-out"), True),
        (UnreachableError("http://a", "refused"), False),
        (AdminRefusedError("http://a", 500, "no such group", readable=True), False),
    ],
)
async def test_who_may_be_registered_is_removed(answer: Exception | None, removed: bool) -> None:
    bench = Bench("http://a")
    bench.admins.answer = answer
    await bench.registration.start()
    await settle()
    await bench.registration.stop()
    assert ("remove http://a" in bench.admins.calls) is removed


async def test_who_was_registered_once_is_removed_though_it_is_away_now() -> None:
    async with working() as bench:
        bench.admins.answer = UnreachableError("http://a", "refused")
        await bench.clock.advance(30)
        await bench.registration.stop()
        assert bench.admins.calls[-1] == "remove http://a"


async def test_reasons_that_take_turns_are_told_once_each(caplog: pytest.LogCaptureFixture) -> None:
    async with working() as bench:
        for number in range(50):
            bench.admins.answer = (UnreachableError if number % 2 else UncertainError)("http://a", "not now")
            await bench.clock.advance(30)
        bench.admins.answer = None
        await bench.clock.advance(30)
        bench.admins.answer = UnreachableError("http://a", "not now")
        await bench.clock.advance(300)
    assert caplog.text.count("executor.registration_lost") == 2
    assert caplog.text.count("executor.not_registered") == 1


async def test_a_reason_that_is_another_each_time_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with working() as bench:
        for number in range(50):
            bench.admins.answer = AdminRefusedError("http://a", 500, f"busy, request {number}", readable=True)
            await bench.clock.advance(30)
    assert len(caplog.records) == 5
