"""The wire by lanes and addresses, with a dispatcher whose requests end when the test says so."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import msgspec
import pytest

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.script import DispatchScript
from jobwheel.admin.domain.writes import TakeBack
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.dispatcher import Flight, Sent
from jobwheel.admin.engine.gates import AddressGates
from jobwheel.admin.engine.lanes import Lane
from jobwheel.admin.engine.senders import Senders
from jobwheel.kernel.clock import SystemClock
from tests.support.engine_parts import NOW_MS, dispatch_job, pending_run
from tests.support.live_admin import until

HANGS = "http://10.0.0.66:9999/"
WORKS = "http://10.0.0.7:9999/"
LIMIT = 4


@dataclass
class Wire:
    """Stands in for the dispatcher: requests to `HANGS` last until `released`; refusals go on to the next candidate."""

    released: asyncio.Event = field(default_factory=asyncio.Event)
    refusing: set[str] = field(default_factory=set)
    requests: list[tuple[str, list[int]]] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def send(self, flights: Sequence[Flight]) -> Sent:
        address = flights[0].candidates[0].address
        self.requests.append((address, [flight.run.id for flight in flights]))
        if address in self.refusing:
            onward = [msgspec.structs.replace(flight, candidates=flight.candidates[1:]) for flight in flights]
            return Sent(answered=False, onward=onward)
        if address == HANGS:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            await self.released.wait()
            self.at_once -= 1
        return Sent(answered=True)


@dataclass
class Scene:
    wire: Wire
    senders: Senders
    landed: list[tuple[str, int, int]]
    fast: Lane = field(default_factory=lambda: Lane("fast", 20))
    slow: Lane = field(default_factory=lambda: Lane("slow", 2))


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    landed: list[tuple[str, int, int]] = []

    def on_landed(address: str, flights: Sequence[Flight], _: float, sent: Sent) -> None:
        landed.append((address, len(flights), len(sent.onward)))

    wire = Wire()
    senders = Senders(wire, AddressGates(LIMIT), SystemClock(), on_landed)  # type: ignore[arg-type]
    yield Scene(wire, senders, landed)
    wire.released.set()
    await senders.stop(5)


def flight(run_id: int, *addresses: str, batch: bool = False) -> Flight:
    candidates = [Candidate(address, None, batch) for address in addresses]
    return Flight(
        pending_run(run_id, job_id=JobId(run_id)), dispatch_job(), "orders", candidates, "", NodeId(1), NOW_MS
    )


async def test_a_full_slow_lane_keeps_no_fast_run_from_any_address(scene: Scene) -> None:
    scene.senders.add(scene.slow, [flight(n, HANGS) for n in range(10)])
    await until(lambda: scene.wire.at_once == 2)
    # Slow runs wait at the address that works as well: for a slot of their lane.
    scene.senders.add(scene.slow, [flight(20 + n, WORKS) for n in range(10)])
    scene.senders.add(scene.fast, [flight(40, WORKS), flight(41, HANGS)])
    await until(lambda: (WORKS, [40]) in scene.wire.requests and (HANGS, [41]) in scene.wire.requests)
    assert len(scene.wire.requests) == 4


async def test_an_address_has_no_more_requests_than_its_limit_from_both_lanes(scene: Scene) -> None:
    scene.senders.add(scene.slow, [flight(n, HANGS) for n in range(10)])
    scene.senders.add(scene.fast, [flight(20 + n, HANGS) for n in range(30)])
    await until(lambda: scene.wire.at_once == LIMIT)
    scene.wire.released.set()
    await until(lambda: len(scene.senders) == 0)
    assert scene.wire.most_at_once == LIMIT
    assert sorted(run_id for _, run_ids in scene.wire.requests for run_id in run_ids) == [*range(10), *range(20, 50)]


async def test_runs_that_go_on_to_the_next_address_go_together(scene: Scene) -> None:
    gone = "http://10.0.0.5:9999/"
    scene.wire.refusing.add(gone)
    scene.senders.add(scene.fast, [flight(n, gone, WORKS, batch=True) for n in range(80)])
    await until(lambda: len(scene.senders) == 0)
    assert scene.wire.requests == [(gone, [*range(80)]), (WORKS, [*range(80)])]
    assert scene.landed == [(gone, 80, 80), (WORKS, 80, 0)]


async def test_scripts_count_for_what_goes_into_a_request(scene: Scene) -> None:
    long = dispatch_job(glue_type="GLUE_SHELL", script=DispatchScript("x" * 400_000, 1_795_000_000_000))
    flights = [msgspec.structs.replace(flight(n, WORKS, batch=True), job=long) for n in range(5)]
    scene.senders.add(scene.fast, flights)
    await until(lambda: len(scene.senders) == 0)
    assert scene.wire.requests == [(WORKS, [0, 1]), (WORKS, [2, 3]), (WORKS, [4])]


async def test_what_waits_at_a_stop_has_not_been_written(scene: Scene) -> None:
    scene.senders.add(scene.fast, [flight(n, HANGS) for n in range(LIMIT + 3)])
    await until(lambda: scene.wire.at_once == LIMIT)
    unsent = await scene.senders.stop(0.05)
    assert [each.take_back() for each in unsent] == [TakeBack(RunId(LIMIT + n), NodeId(1), NOW_MS) for n in range(3)]
    assert len(scene.senders) == 0
