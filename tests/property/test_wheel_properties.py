"""Every run leaves the wheel exactly once, never early, in order, whatever happens to the clock."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.wheel import TimingWheel
from jobwheel.kernel.fake_clock import FakeClock
from tests.support.engine_parts import NOW_MS, pending_run


@dataclass(frozen=True, slots=True)
class Add:
    offsets_ms: list[int]


@dataclass(frozen=True, slots=True)
class Advance:
    ms: int


@dataclass(frozen=True, slots=True)
class Step:
    ms: int


@dataclass(frozen=True, slots=True)
class AddAgain:
    """What the feeder does: it brings runs that the wheel may hold already."""


_EVENTS = st.one_of(
    st.builds(Add, st.lists(st.integers(-2000, 6000), min_size=1, max_size=8)),
    st.builds(Advance, st.integers(0, 3000)),
    st.builds(Step, st.integers(-20_000, 20_000)),
    st.builds(AddAgain),
)


class _Scene:
    def __init__(self) -> None:
        self.clock = FakeClock(NOW_MS)
        self.wheel = TimingWheel(self._left, self.clock, capacity=10_000)
        self.added: list[PendingRun] = []
        self.left: list[PendingRun] = []
        self.early: list[PendingRun] = []
        self.unordered: list[Sequence[PendingRun]] = []

    def _left(self, due: Sequence[PendingRun]) -> None:
        self.left += due
        self.early += [run for run in due if run.due_ms > self.clock.now()]
        if list(due) != sorted(due, key=lambda run: (run.due_ms, run.id)):
            self.unordered.append(due)

    async def play(self, events: Sequence[Add | Advance | Step | AddAgain]) -> None:
        await self.wheel.start()
        for event in events:
            await self._one(event)
        # Half a second is the longest that a step of the clock may go unnoticed.
        latest_ms = max([self.clock.now(), *(run.due_ms for run in self.added)])
        await self.clock.advance((latest_ms - self.clock.now()) / 1000 + 0.5)
        await self.wheel.stop()

    async def _one(self, event: Add | Advance | Step | AddAgain) -> None:
        if isinstance(event, Add):
            new = [
                pending_run(len(self.added) + n, self.clock.now() + offset) for n, offset in enumerate(event.offsets_ms)
            ]
            self.added += new
            assert self.wheel.add(new) == len(new)
        elif isinstance(event, Advance):
            await self.clock.advance(event.ms / 1000)
        elif isinstance(event, Step):
            self.clock.step(event.ms / 1000)
        else:
            assert self.wheel.add(self.added) == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(_EVENTS, max_size=12))
def test_each_run_leaves_once_never_early_and_in_order(events: list[Add | Advance | Step | AddAgain]) -> None:
    scene = _Scene()
    asyncio.run(scene.play(events))
    assert scene.early == []
    assert scene.unordered == []
    assert sorted(run.id for run in scene.left) == [run.id for run in scene.added]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 4000), min_size=1, max_size=30), st.lists(st.integers(1, 700), max_size=12))
def test_while_time_only_passes_each_run_leaves_at_its_very_time(offsets_ms: list[int], advances: list[int]) -> None:
    async def play() -> list[tuple[int, int]]:
        clock = FakeClock(NOW_MS)
        seen: list[tuple[int, int]] = []
        wheel = TimingWheel(lambda due: seen.extend((run.due_ms, clock.now()) for run in due), clock, 1000)
        await wheel.start()
        await clock.advance(0)
        wheel.add(pending_run(n, NOW_MS + offset) for n, offset in enumerate(offsets_ms))
        for ms in [*advances, 5000]:
            await clock.advance(ms / 1000)
        await wheel.stop()
        return seen

    seen = asyncio.run(play())
    assert len(seen) == len(offsets_ms)
    assert all(due_ms == at_ms for due_ms, at_ms in seen)
