"""The wire: a bounded number of requests at once, made by workers that come and go with the load."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.engine.dispatcher import Dispatcher, Flight, Sent
from jobwheel.admin.engine.gates import AddressGates
from jobwheel.admin.engine.lanes import Lane
from jobwheel.admin.engine.line import Line
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

_MOST_IN_REQUEST = 100
_MOST_CHARACTERS = 1_000_000
"""Of the parameters and scripts in one request, which may have 10 MiB."""


class Landed(Protocol):
    """Told of runs that went to an address and have come from it: how long it took, and what came of it.

    Those that go on to another address are not over yet; they have no slot there so far.
    """

    def __call__(self, address: str, flights: Sequence[Flight], took_s: float, sent: Sent) -> None: ...


_Line = Line[str, Flight]
"""The runs of a lane that wait for the wire to one address."""


class Senders:
    """Sends what took off, each lane and address by itself: one that hangs holds up its own runs alone.

    Every request has a slot of its runs' lane, and one of its address.
    """

    def __init__(self, dispatcher: Dispatcher, gates: AddressGates, clock: Clock, landed: Landed) -> None:
        self._dispatcher = dispatcher
        self._clock = clock
        self._landed = landed
        self._gates = gates
        self._lines: dict[tuple[str, str], _Line] = {}
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
        lines = {}
        for flight in flights:
            address = flight.candidates[0].address
            line = self._lines.get((lane.name, address))
            if line is None:
                line = self._lines[lane.name, address] = _Line(lane, address)
            line.items.append(flight)
            lines[address] = line
            self._in_flight.add(flight.run.id)
        for line in lines.values():
            self._staff(line)

    async def stop(self, within_s: float) -> list[Flight]:
        """Let what is on the wire land, for so long; return the runs of which nothing was written."""
        self._stopping = True
        if self._workers:
            await asyncio.wait(list(self._workers), timeout=within_s)
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        unsent = [flight for line in self._lines.values() for flight in line.items]
        self._lines.clear()
        self._in_flight.clear()
        self._stopping = False
        return unsent

    def _staff(self, line: _Line) -> None:
        """As many workers as there may be requests at once."""
        in_request = _MOST_IN_REQUEST if line.items[0].candidates[0].batch else 1
        wanted = min(self._gates.limit, line.busy - (-len(line.items) // in_request))
        while line.workers < wanted:
            line.workers += 1
            worker = asyncio.create_task(self._work(line))
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def _work(self, line: _Line) -> None:
        try:
            while line.items and not self._stopping:
                # The lane first: who waits for a slot of a full lane keeps nobody of the other one from the address.
                group_id = line.items[0].job.group_id
                await line.lane.enter(group_id)
                try:
                    await self._send_next(line)
                finally:
                    line.lane.leave(group_id)
        finally:
            line.workers -= 1
            if not line.workers and not line.items:
                self._lines.pop((line.lane.name, line.key), None)

    async def _send_next(self, line: _Line) -> None:
        await self._gates.enter(line.key)
        try:
            if self._stopping or not line.items:
                # Others took them while the slots were waited for.
                return
            flights = _together(line.items)
            line.busy += 1
            try:
                await self._send(line, flights)
            finally:
                line.busy -= 1
        finally:
            self._gates.leave(line.key)

    async def _send(self, line: _Line, flights: Sequence[Flight]) -> None:
        began_s = self._clock.monotonic()
        sent = Sent(answered=True)
        try:
            sent = await self._dispatcher.send(flights)
        except Exception:
            # The rows stay "sending" and are found by recovery, which treats them as unconfirmed.
            log.exception("senders.send_failed", address=line.key, run_id=flights[0].run.id, runs=len(flights))
        finally:
            self._in_flight.difference_update([flight.run.id for flight in flights])
            self._landed(line.key, flights, self._clock.monotonic() - began_s, sent)
            if sent.onward:
                self.add(line.lane, sent.onward)


def _together(waiting: deque[Flight]) -> list[Flight]:
    """The runs that go in the next request: one, or what an address that takes batches has waiting."""
    first = waiting.popleft()
    flights = [first]
    if not first.candidates[0].batch:
        return flights
    room = _MOST_CHARACTERS - _characters(first)
    while waiting and len(flights) < _MOST_IN_REQUEST:
        room -= _characters(waiting[0])
        if waiting[0].app_name != first.app_name or room < 0:
            break
        flights.append(waiting.popleft())
    return flights


def _characters(flight: Flight) -> int:
    script = flight.job.script
    return len(flight.run.parameter) + (0 if script is None else len(script.source))
