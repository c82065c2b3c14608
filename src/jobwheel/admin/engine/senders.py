"""The wire to each address: a bounded number of requests at once, made by workers that come and go with the load."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.engine.dispatcher import Dispatcher, Flight
from jobwheel.admin.engine.lanes import Lane
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

_MOST_IN_REQUEST = 100
_MOST_CHARACTERS = 1_000_000
"""Of the parameters in one request, which may have 10 MiB."""


class Landed(Protocol):
    """Told of runs whose sending is over: how long it took, and whether the address answered."""

    def __call__(
        self, lane: Lane, address: str, flights: Sequence[Flight], took_s: float, *, answered: bool
    ) -> None: ...


@dataclass(slots=True)
class _Line:
    """The runs that wait for the wire of one address, and its workers: those that have a request, and all."""

    address: str
    flights: deque[tuple[Lane, Flight]] = field(default_factory=deque)
    busy: int = 0
    workers: int = 0


class Senders:
    """Sends what took off, each address by itself: one that hangs holds up its own runs alone.

    Every request has a slot of its runs' lane.
    """

    def __init__(self, dispatcher: Dispatcher, limit: int, clock: Clock, landed: Landed) -> None:
        self._dispatcher = dispatcher
        self._limit = limit
        self._clock = clock
        self._landed = landed
        self._lines: dict[str, _Line] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._in_flight: set[RunId] = set()
        self._stopping = False

    def __len__(self) -> int:
        """How many runs are on the wire or wait for it."""
        return len(self._in_flight)

    def holds(self, run_id: RunId) -> bool:
        return run_id in self._in_flight

    def add(self, lane: Lane, flights: Sequence[Flight]) -> None:
        """Runs took off: send them."""
        for flight in flights:
            address = flight.candidates[0].address
            line = self._lines.get(address)
            if line is None:
                line = self._lines[address] = _Line(address)
            line.flights.append((lane, flight))
            self._in_flight.add(flight.run.id)
        for address in {flight.candidates[0].address for flight in flights}:
            self._staff(self._lines[address])

    async def stop(self, within_s: float) -> list[RunId]:
        """Let what is on the wire land, for so long; return the runs of which nothing was written."""
        self._stopping = True
        if self._workers:
            await asyncio.wait(list(self._workers), timeout=within_s)
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        unsent = [flight.run.id for line in self._lines.values() for _, flight in line.flights]
        self._lines.clear()
        self._in_flight.clear()
        self._stopping = False
        return unsent

    def _staff(self, line: _Line) -> None:
        """As many workers as there may be requests at once."""
        in_request = _MOST_IN_REQUEST if line.flights[0][1].candidates[0].batch else 1
        wanted = min(self._limit, line.busy - (-len(line.flights) // in_request))
        while line.workers < wanted:
            line.workers += 1
            worker = asyncio.create_task(self._work(line))
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def _work(self, line: _Line) -> None:
        try:
            while line.flights and not self._stopping:
                lane = line.flights[0][0]
                async with lane:
                    flights = self._next_request(line, lane)
                    if flights:
                        line.busy += 1
                        await self._send(line.address, lane, flights)
                        line.busy -= 1
        finally:
            line.workers -= 1
            if not line.workers and not line.flights:
                self._lines.pop(line.address, None)

    async def _send(self, address: str, lane: Lane, flights: Sequence[Flight]) -> None:
        answered, began_s = True, self._clock.monotonic()
        try:
            answered = await self._dispatcher.send(flights)
        except Exception:
            # The rows stay "sending" and are found by recovery, which treats them as unconfirmed.
            log.exception("senders.send_failed", address=address, run_id=flights[0].run.id, runs=len(flights))
        finally:
            self._in_flight.difference_update([flight.run.id for flight in flights])
            took_s = self._clock.monotonic() - began_s
            self._landed(lane, address, flights, took_s, answered=answered)

    def _next_request(self, line: _Line, lane: Lane) -> list[Flight]:
        """The runs that go together in the next request; none if others took them while the slot was waited for."""
        if self._stopping or not line.flights or line.flights[0][0] is not lane:
            return []
        return _together(line, lane)


def _together(line: _Line, lane: Lane) -> list[Flight]:
    """One run, or what an address that takes batches has waiting."""
    first = line.flights.popleft()[1]
    flights = [first]
    if not first.candidates[0].batch:
        return flights
    room = _MOST_CHARACTERS - len(first.run.parameter)
    while line.flights and len(flights) < _MOST_IN_REQUEST:
        of_lane, flight = line.flights[0]
        room -= len(flight.run.parameter)
        if of_lane is not lane or flight.app_name != first.app_name or room < 0:
            break
        line.flights.popleft()
        flights.append(flight)
    return flights
