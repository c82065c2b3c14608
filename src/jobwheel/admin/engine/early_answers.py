"""Executors' answers that wait a moment for the result of their run."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.writes import Accepted
from jobwheel.kernel.buffer import BatchingBuffer, BufferLimits
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.service import Service

_LET_GO_TOGETHER: Final = 500
_WAITS_S: Final = 0.05
_WAITS_BEHIND_S: Final = 3.0


class Write(Protocol):
    """Writes an answer when its turn comes; an `early` one only if `begin` still says so then."""

    def __call__(self, answer: Accepted, *, early: bool) -> None: ...


class EarlyAnswers(Service):
    """Keeps each yes for a twentieth of a second, or until the run's result takes it along.

    Many a run ends within milliseconds; written with its result, its yes costs no change of the row of its own. If this
    process dies meanwhile, the run is asked after like any whose answer was lost on its way.

    Also one that waits for its turn to be written may go with its result. While much else waits they wait longer, for
    three seconds: they would be in the way of the results that are to take them along.

    Args:
        write: called with each that nobody has taken so far, at the latest when this is stopped.
        is_behind: whether much waits to be written.
    """

    def __init__(self, write: Write, clock: Clock, is_behind: Callable[[], bool]) -> None:
        super().__init__("early_answers", clock)
        self._write = write
        self._is_behind = is_behind
        self._stopping = asyncio.Event()
        self._kept = dict[RunId, Accepted]()
        self._on_their_way = dict[RunId, Accepted]()
        self._waiting = BatchingBuffer[Accepted](
            "early_answers", self._let_go, lambda answer, _: self._let_go_of(answer), clock, _LIMITS
        )

    def __len__(self) -> int:
        """How many are kept, without those that wait for their turn to be written."""
        return len(self._kept)

    def keeps(self, run_id: RunId) -> bool:
        """Whether an answer of the run is kept."""
        return run_id in self._kept

    def keep(self, answer: Accepted) -> None:
        """Keep it; an earlier one of the same run (which was sent again) is written now."""
        self.write_out(answer.run_id)
        self._kept[answer.run_id] = answer
        self._waiting.add(answer)

    def take(self, run_id: RunId) -> Accepted | None:
        """The answer of a run, if it was not written; it is the caller's to write."""
        return self._kept.pop(run_id, None) or self._on_their_way.pop(run_id, None)

    def begin(self, answer: Accepted) -> bool:
        """The turn of an early one has come: whether it is to be written. From now on nobody takes it."""
        if self._on_their_way.get(answer.run_id) is not answer:
            return False
        del self._on_their_way[answer.run_id]
        return True

    def write_out(self, run_id: RunId) -> None:
        """Something else is to be written of the run: what is kept of it goes first."""
        answer = self.take(run_id)
        if answer is not None:
            self._write(answer, early=False)

    async def on_start(self) -> None:
        self._stopping.clear()
        await self._waiting.start()

    async def on_stop(self) -> None:
        self._stopping.set()
        await self._waiting.stop()

    async def _let_go(self, answers: Sequence[Accepted]) -> None:
        until_s = self.clock.monotonic() + _WAITS_BEHIND_S
        while self._is_behind() and self.clock.monotonic() < until_s and not self._stopping.is_set():
            await self.clock.wait(_WAITS_S, self._stopping)
        for answer in answers:
            self._let_go_of(answer)

    def _let_go_of(self, answer: Accepted) -> None:
        # It may be gone with its result, and another one of the same run be kept.
        if self._kept.get(answer.run_id) is answer:
            self._on_their_way[answer.run_id] = self._kept.pop(answer.run_id)
            self._write(answer, early=True)


_LIMITS = BufferLimits(most_items=_LET_GO_TOGETHER, most_wait_s=_WAITS_S)
