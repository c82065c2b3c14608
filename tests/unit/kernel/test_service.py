import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

import pytest

from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.clock import SystemClock
from jobwheel.kernel.fake_clock import FakeClock, settle
from jobwheel.kernel.service import Service, ServiceGroup

Main = Callable[[], Awaitable[None]]


class Recorder(Service):
    """Writes down what happens to it."""

    def __init__(self, name: str, notes: list[str], clock: FakeClock | None = None) -> None:
        super().__init__(name, clock or FakeClock())
        self.notes = notes
        self.start_error: Exception | None = None
        self.stop_error: Exception | None = None
        self.main: Main | None = None

    async def on_start(self) -> None:
        await asyncio.sleep(0)  # noqa: TID251 - a turn, in which others may get in between
        self.notes.append(f"start {self.name}")
        if self.main is not None:
            self.supervise("main", self.main, Backoff(first_s=1, most_s=4, jitter=0))
        if self.start_error is not None:
            raise self.start_error

    async def on_stop(self) -> None:
        await asyncio.sleep(0)  # noqa: TID251 - as above
        self.notes.append(f"stop {self.name}")
        if self.stop_error is not None:
            raise self.stop_error


def is_running(service: Service) -> bool:
    """The property, asked anew: the type checker takes it for a constant between two awaits."""
    return service.running


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def test_start_and_stop_twice_are_start_and_stop_once() -> None:
    notes: list[str] = []
    service = Recorder("a", notes)
    await asyncio.gather(service.start(), service.start())
    await service.start()
    assert is_running(service)
    await asyncio.gather(service.stop(), service.stop())
    await service.stop()
    assert not is_running(service)
    assert notes == ["start a", "stop a"]


async def test_a_second_start_or_stop_returns_only_when_the_first_has_done_its_work() -> None:
    notes: list[str] = []
    service = Recorder("a", notes)

    async def second(change: Main, expected: str) -> None:
        await change()
        assert notes[-1:] == [expected]

    await asyncio.gather(service.start(), second(service.start, "start a"))
    await asyncio.gather(service.stop(), second(service.stop, "stop a"))


async def test_stop_before_a_start_does_nothing() -> None:
    notes: list[str] = []
    service = Recorder("a", notes)
    await service.stop()
    assert notes == []


async def test_a_service_starts_again_after_a_stop() -> None:
    notes: list[str] = []
    service = Recorder("a", notes)
    service.main = _for_ever
    for _ in range(2):
        await service.start()
        await service.stop()
    assert notes == ["start a", "stop a"] * 2


async def test_wait_started_returns_after_the_start_and_not_before() -> None:
    service = Recorder("a", [])
    waiter = asyncio.create_task(service.wait_started())
    await settle()
    assert not waiter.done()
    await service.start()
    await asyncio.wait_for(waiter, 1)
    await service.stop()
    waiter = asyncio.create_task(service.wait_started())
    await settle()
    assert not waiter.done()
    waiter.cancel()


async def test_a_start_that_fails_stops_what_it_began_and_says_why() -> None:
    notes: list[str] = []
    service = Recorder("a", notes)
    ended = asyncio.Event()

    async def main() -> None:
        try:
            await _for_ever()
        finally:
            ended.set()

    service.main = main
    service.start_error = ValueError("no such port")
    service_start = asyncio.create_task(service.start())
    with pytest.raises(ValueError, match="no such port"):
        await service_start
    assert notes == ["start a", "stop a"]
    assert not is_running(service)
    assert not service._tasks
    service.start_error = None
    await service.start()
    assert is_running(service)
    await service.stop()
    assert ended.is_set()


async def test_a_stop_that_fails_still_ends_the_tasks() -> None:
    service = Recorder("a", [])
    service.main = _for_ever
    service.stop_error = OSError("disk full")
    await service.start()
    (task,) = service._tasks.values()
    with pytest.raises(OSError, match="disk full"):
        await service.stop()
    assert task.done()
    assert not is_running(service)


async def test_a_crash_is_logged_counted_and_followed_by_a_restart(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    service = Recorder("engine", [], clock)
    calls: list[float] = []

    async def main() -> None:
        calls.append(clock.monotonic())
        if len(calls) <= 3:
            raise RuntimeError("made-up crash")

    service.main = main
    await service.start()
    start = clock.monotonic()
    await clock.advance(60)
    await service.stop()
    assert [call - start for call in calls] == [0, 1, 3, 7]
    assert service.crashes == {"main": 3}
    crashes = [record for record in caplog.records if "service.task_crashed" in record.getMessage()]
    assert len(crashes) == 3
    assert "service=engine task=main crashes=3" in crashes[-1].getMessage()
    assert crashes[0].levelno == logging.ERROR
    assert crashes[0].exc_info is not None


async def test_a_cancellation_from_inside_is_a_crash_too(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    service = Recorder("engine", [], clock)
    calls = 0

    async def main() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            future.cancel()
            await future
        await _for_ever()

    service.main = main
    await service.start()
    await clock.advance(2)
    assert calls == 2
    assert service.crashes == {"main": 1}
    await service.stop()


async def test_two_tasks_of_one_name_are_refused() -> None:
    service = Recorder("a", [])
    service.main = _for_ever
    await service.start()
    with pytest.raises(RuntimeError, match="main"):
        service.supervise("main", _for_ever)
    await service.stop()


async def test_cancel_ends_one_task_and_leaves_the_others() -> None:
    service = Recorder("a", [])
    await service.start()
    service.supervise("one", _for_ever)
    service.supervise("two", _for_ever)
    one, two = service._tasks["one"], service._tasks["two"]
    await service.cancel("one")
    await service.cancel("one")
    assert one.done()
    assert not two.done()
    await service.stop()
    assert two.done()


async def test_a_group_starts_in_order_and_stops_in_the_opposite_order() -> None:
    notes: list[str] = []
    group = ServiceGroup("all", FakeClock(), [Recorder(name, notes) for name in "abc"])
    await group.start()
    await group.stop()
    assert notes == ["start a", "start b", "start c", "stop c", "stop b", "stop a"]


async def test_a_group_whose_member_does_not_start_stops_those_before_it() -> None:
    notes: list[str] = []
    services = [Recorder(name, notes) for name in "abc"]
    services[1].start_error = OSError("port in use")
    group = ServiceGroup("all", FakeClock(), services)
    with pytest.raises(OSError, match="port in use"):
        await group.start()
    assert notes == ["start a", "start b", "stop b", "stop a"]
    assert not any(service.running for service in [group, *services])


async def test_a_member_that_does_not_stop_well_keeps_none_of_the_others_running(
    caplog: pytest.LogCaptureFixture,
) -> None:
    notes: list[str] = []
    services = [Recorder(name, notes) for name in "abc"]
    services[1].stop_error = OSError("disk full")
    group = ServiceGroup("all", FakeClock(), services)
    await group.start()
    await group.stop()
    assert notes[-3:] == ["stop c", "stop b", "stop a"]
    assert "service.stop_failed service=b" in caplog.text


async def test_any_order_of_starts_and_stops_ends_clean() -> None:
    chance = random.Random(20_26)
    notes: list[str] = []
    services: list[Service] = [Recorder(str(number), notes) for number in range(8)]
    for service in services:
        assert isinstance(service, Recorder)
        service.main = _for_ever
    group = ServiceGroup("all", SystemClock(), services)
    for _ in range(100):
        changes = [chance.choice([service.start, service.stop]) for service in chance.choices([*services, group], k=12)]
        await asyncio.gather(*(change() for change in changes))
    await group.start()
    await group.stop()
    await asyncio.gather(*(service.stop() for service in services))
    assert not any(service.running or service._tasks for service in services)
    for service in services:
        own = [note for note in notes if note.endswith(f" {service.name}")]
        assert own == [f"start {service.name}", f"stop {service.name}"] * (len(own) // 2)
    assert [task for task in asyncio.all_tasks() if ".main" in task.get_name()] == []
