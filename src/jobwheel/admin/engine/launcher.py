"""From the wheel to the wire: lane slot, address, take-off, send."""

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.domain.writes import TakeOff
from jobwheel.admin.engine import trigger_message
from jobwheel.admin.engine.addresses import AddressBook
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.dispatcher import Dispatcher, Flight
from jobwheel.admin.engine.lanes import AddressSlots, Lane, SlowJobs
from jobwheel.admin.engine.routing import Routers, UnknownStrategyError
from jobwheel.admin.store import Connection, run_log, runs
from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.loop import MOST_PAUSE_S
from jobwheel.kernel.service import Service

log = get_logger(__name__)

_GATHER_S = 0.003
_STOP_WAIT_S = 3.2


@dataclass(frozen=True, slots=True)
class _Grounded:
    """A run that takes off only to fail: there is nowhere to send it."""

    run: PendingRun
    job: DispatchJob
    message: str


@dataclass(slots=True)
class _Routed:
    """What became of a batch's runs when they were routed."""

    flights: list[Flight] = field(default_factory=list)
    grounded: list[_Grounded] = field(default_factory=list)
    orphans: list[PendingRun] = field(default_factory=list)

    def runs(self) -> list[PendingRun]:
        return [*(each.run for each in self.flights), *(each.run for each in self.grounded), *self.orphans]


class Launcher(Service):
    """Takes runs that came due through lane, route and take-off, and has them sent.

    `forget` is told of runs whose take-off is decided. A run is in exactly one place: a lane's queue, parked behind an
    address that has its fill of sends, or in flight.
    """

    def __init__(
        self,
        context: EngineContext,
        book: AddressBook,
        routers: Routers,
        dispatcher: Dispatcher,
        forget: Callable[[Iterable[RunId]], None],
    ) -> None:
        super().__init__("launcher", context.clock)
        self._context = context
        self._book = book
        self._routers = routers
        self._dispatcher = dispatcher
        self._forget = forget
        self.lanes = (Lane("fast", context.limits.fast_lane), Lane("slow", context.limits.slow_lane))
        self._slow_jobs = SlowJobs()
        self._slots = AddressSlots(context.limits.address_limit, context.limits.wheel_capacity // 2)
        self._put_off: dict[JobId, str] = {}
        self._in_flight: dict[RunId, asyncio.Task[None]] = {}
        self._unsent: list[RunId] = []
        self._taking_off = {lane.name: asyncio.Lock() for lane in self.lanes}
        self._backoff = Backoff(most_s=MOST_PAUSE_S)

    @property
    def sends_in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def parked(self) -> int:
        """How many runs wait for a slot of their address."""
        return self._slots.parked

    def put_off_jobs(self) -> list[JobId]:
        """Jobs of which runs were put off: the feeder leaves them in the database until their address is relieved."""
        relieved = [job_id for job_id, address in self._put_off.items() if self._slots.is_relieved(address)]
        for job_id in relieved:
            del self._put_off[job_id]
        return list(self._put_off)

    def is_in_flight(self, run_id: RunId) -> bool:
        return run_id in self._in_flight

    def submit(self, due: Sequence[PendingRun]) -> None:
        """Runs came due: put each into its job's lane."""
        now_ms = self.clock.now()
        fast, slow = self.lanes
        slow_runs = [run for run in due if self._slow_jobs.is_slow(run.job_id, now_ms)]
        if not slow_runs:
            fast.put(due)
            return
        slow.put(slow_runs)
        fast.put([run for run in due if not self._slow_jobs.is_slow(run.job_id, now_ms)])

    def forget_waiting(self) -> None:
        """This node was declared dead: what waits here is another one's now."""
        for lane in self.lanes:
            lane.clear()
        self._slots.clear_parked()
        self._put_off.clear()

    async def on_start(self) -> None:
        for lane in self.lanes:
            self.supervise(f"pump.{lane.name}", functools.partial(self._pump, lane))

    async def on_stop(self) -> None:
        """Take no more runs off, and let those in flight land; what has not landed is found unconfirmed later.

        A take-off under way is brought to its end: what it commits as being sent is sent. What has not been on the wire
        when the time is up is pending again, for the next start.
        """
        for lane in self.lanes:
            async with self._taking_off[lane.name]:
                await self.cancel(f"pump.{lane.name}")
        if self._in_flight:
            await asyncio.wait(list(self._in_flight.values()), timeout=_STOP_WAIT_S)
        left = list(self._in_flight.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        # A task that is cancelled before its first step leaves no trace but its entry.
        unsent = [*self._unsent, *self._in_flight]
        self._unsent.clear()
        self._in_flight.clear()
        if unsent:
            await self._context.database.write(run_log.take_back, self._context.node.id, unsent)

    async def _pump(self, lane: Lane) -> None:
        failures = 0
        while True:
            await lane.ready()
            if len(lane) > lane.limit - lane.in_use < lane.limit // 4:
                # Each take-off is a commit: a few milliseconds gather more freed slots for it.
                await self.clock.wait(_GATHER_S)
            async with self._taking_off[lane.name]:
                launched = await self._launch_next(lane)
            failures = 0 if launched else failures + 1
            if failures:
                await self.clock.wait(self._backoff.delay_s(failures))

    async def _launch_next(self, lane: Lane) -> bool:
        batch = lane.take()
        try:
            await self._launch(lane, batch)
        except Exception as error:  # noqa: BLE001 - the runs are pending still, and are next when it works again
            log.warning("launcher.take_off_failed", lane=lane.name, runs=len(batch), error=repr(error))
            return False
        return True

    async def _launch(self, lane: Lane, batch: Sequence[PendingRun]) -> None:
        """Take a batch off; if the database fails, every run of it is back in the lane or parked."""
        database, node_id = self._context.database, self._context.node.id
        routed = _Routed(orphans=list(batch))
        try:
            jobs = await database.read(runs.load_dispatch_jobs, list({run.job_id for run in batch}))
            routed = self._route_all(batch, jobs)
            lane.release(len(batch) - len(routed.runs()))
            take_offs = [flight.take_off(flight.candidates[0]) for flight in routed.flights]
            take_offs += [_grounded_take_off(each) for each in routed.grounded]
            orphans = [run.id for run in routed.orphans]
            matched: set[RunId] = set()
            if take_offs or orphans:
                matched = await database.write(_take_off, node_id, self.clock.now(), take_offs, orphans)
        except Exception:
            for flight in routed.flights:
                lane.put_first(self._slots.give_back(flight.candidates[0].address))
            lane.put_first(routed.runs())
            lane.release(len(routed.runs()))
            raise
        self._forget(run.id for run in routed.runs())
        self._start_all(lane, routed, matched)

    def _route_all(self, batch: Sequence[PendingRun], jobs: Mapping[JobId, DispatchJob]) -> _Routed:
        routed = _Routed()
        for run in batch:
            job = jobs.get(run.job_id)
            if job is None:
                routed.orphans.append(run)
                continue
            flight = self._route(run, job)
            if isinstance(flight, _Grounded):
                routed.grounded.append(flight)
                continue
            address = flight.candidates[0].address
            if not self._slots.has_place(address):
                # Out of the memory, where it would take everybody's room. It is pending, and the feeder brings it.
                self._put_off[run.job_id] = address
                self._forget([run.id])
            elif self._slots.take(address, run):
                routed.flights.append(flight)
        return routed

    def _route(self, run: PendingRun, job: DispatchJob) -> Flight | _Grounded:
        candidates = self._book.candidates(job.group_id)
        if run.named_addresses:
            candidates = [each for each in candidates if each.address in run.named_addresses]
        addresses = [each.address for each in candidates]
        fixed = self._book.is_fixed(job.group_id)
        heading = trigger_message.heading(self._context.node.id, run, job, addresses, fixed=fixed)
        try:
            ordered = self._routers.order(job.route_strategy, job.id, candidates, self.clock.now())
        except UnknownStrategyError as error:
            return _Grounded(run, job, f"{heading}{error}\n")
        if not ordered:
            return _Grounded(
                run, job, f"{heading}no live address: start an executor of the group, or see why none beats\n"
            )
        app_name = self._book.app_name(job.group_id) or ""
        tried = ordered[:1] if run.named_addresses else ordered
        return Flight(run, job, app_name, tried, heading, self._context.node.id)

    def _start_all(self, lane: Lane, routed: _Routed, matched: set[RunId]) -> None:
        lane.release(len(routed.orphans) + len(routed.grounded))
        for each in routed.grounded:
            if each.run.id in matched:
                self._dispatcher.fail(each.run, each.message)
        for flight in routed.flights:
            if flight.run.id in matched:
                self._in_flight[flight.run.id] = asyncio.create_task(self._fly(lane, flight))
            else:
                self._landed(lane, flight)

    async def _fly(self, lane: Lane, flight: Flight) -> None:
        address = flight.candidates[0].address
        started_s: float | None = None
        try:
            async with self._slots.wire(address):
                started_s = self.clock.monotonic()
                await self._dispatcher.send(flight)
        except Exception:
            # The row stays "sending" and is found by recovery, which treats it as unconfirmed.
            log.exception("launcher.send_failed", run_id=flight.run.id)
        finally:
            del self._in_flight[flight.run.id]
            if started_s is None:
                self._unsent.append(flight.run.id)
            else:
                self._slow_jobs.note(flight.job.id, self.clock.monotonic() - started_s, self.clock.now())
            self._landed(lane, flight)

    def _landed(self, lane: Lane, flight: Flight) -> None:
        lane.put_first(self._slots.give_back(flight.candidates[0].address))
        lane.release()


def _grounded_take_off(grounded: _Grounded) -> TakeOff:
    return TakeOff(grounded.run.id, "", grounded.job.handler, grounded.job.route_strategy, None)


def _take_off(
    connection: Connection, node_id: NodeId, sent_ms: int, take_offs: Sequence[TakeOff], orphans: Sequence[RunId]
) -> set[RunId]:
    if orphans:
        runs.remove_runs_without_job(connection, node_id, orphans)
    return run_log.take_off(connection, node_id, sent_ms, take_offs)
