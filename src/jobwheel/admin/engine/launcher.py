"""From the wheel to the wire: lane, address, take-off, send."""

import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from jobwheel.admin.domain.ids import JobId, RunId
from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.address_slots import AddressSlots
from jobwheel.admin.engine.addresses import AddressBook
from jobwheel.admin.engine.answers import Answers
from jobwheel.admin.engine.askers import Askers
from jobwheel.admin.engine.broadcasts import Broadcast
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.departures import Departures, RouteFinder
from jobwheel.admin.engine.dispatcher import Dispatcher, Flight, Sent
from jobwheel.admin.engine.executor_client import ExecutorClient
from jobwheel.admin.engine.figures import LaneFigures
from jobwheel.admin.engine.gates import AddressGates
from jobwheel.admin.engine.lanes import MOST_IN_TAKE_OFF, Lane, SlowJobs
from jobwheel.admin.engine.put_off import PutOff
from jobwheel.admin.engine.routing import Chosen, Routers
from jobwheel.admin.engine.senders import Senders
from jobwheel.admin.engine.stages import BatchBeforeFailedError, GoOn, Stages
from jobwheel.admin.engine.take_backs import TakeBacks
from jobwheel.admin.store import runs
from jobwheel.admin.store.errors import UnknownCommitError
from jobwheel.admin.store.take_off import TakenOff, take_off
from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.loop import MOST_PAUSE_S
from jobwheel.kernel.service import Service

log = get_logger(__name__)

_STOP_WAIT_S = 3.2


class Launcher(Service):
    """Takes runs that came due through lane, route and take-off, and has them sent.

    `forget` is told of runs whose take-off is decided. A run is in exactly one place: a lane's queue, with the askers,
    parked behind an address that has its fill of sends, or with the senders.
    """

    def __init__(
        self,
        context: EngineContext,
        client: ExecutorClient,
        book: AddressBook,
        routers: Routers,
        dispatcher: Dispatcher,
        take_backs: TakeBacks,
        forget: Callable[[Iterable[RunId]], None],
    ) -> None:
        super().__init__("launcher", context.clock)
        self._context = context
        self._dispatcher = dispatcher
        self._take_backs = take_backs
        self._forget = forget
        self.lanes = (Lane("fast", context.limits.fast_lane), Lane("slow", context.limits.slow_lane))
        self._book = book
        self._finder = RouteFinder(context, book, routers)
        gates = AddressGates(context.limits.address_limit)
        self._askers = Askers(client, book, routers, self._finder, context, gates, self._on_answered)
        self._answers: dict[RunId, Answers] = {}
        self._slow_jobs = SlowJobs(context.limits.slow_send_ms / 1000, context.limits.slow_sends)
        self._slots = AddressSlots(context.limits.address_limit, context.limits.wheel_capacity // 2)
        self._put_off = PutOff()
        self._senders = Senders(dispatcher, gates, context.clock, self._on_landed)
        self._stages = {lane.name: Stages() for lane in self.lanes}
        self._backoff = Backoff(most_s=MOST_PAUSE_S)

    @property
    def sends_in_flight(self) -> int:
        return len(self._senders)

    def lane_figures(self) -> tuple[LaneFigures, ...]:
        """What the lanes do. Runs that wait until somebody asks for them wait for a slot of theirs as well."""
        return tuple(
            LaneFigures(lane.name, lane.in_use, lane.limit, len(lane) + self._askers.waiting(lane))
            for lane in self.lanes
        )

    @property
    def waiting(self) -> int:
        """How many runs that came due wait to take off, for whatever."""
        return sum(len(lane) for lane in self.lanes) + self._slots.parked

    @property
    def parked(self) -> int:
        """How many runs wait for a slot of their address."""
        return self._slots.parked

    def put_off_jobs(self) -> list[JobId]:
        """Jobs of which runs were put off: the feeder leaves them in the database until there is room for them."""
        return self._put_off.jobs()

    def is_in_flight(self, run_id: RunId) -> bool:
        """Whether somebody here knows what is to become of a run that took off."""
        return self._senders.holds(run_id) or self._take_backs.holds(run_id)

    def submit(self, due: Sequence[PendingRun]) -> None:
        """Runs came due: put each into its job's lane."""
        for lane, of_lane in self._by_lane(due):
            lane.put(of_lane)

    def _call(self, runs: Sequence[PendingRun]) -> None:
        """It is the turn of runs that were parked: they are next in their jobs' lanes."""
        for lane, of_lane in self._by_lane(runs):
            lane.call(of_lane)

    def _by_lane(self, runs: Sequence[PendingRun]) -> Iterable[tuple[Lane, Sequence[PendingRun]]]:
        return zip(self.lanes, self._slow_jobs.sorted_out(runs, self.clock.now()), strict=True)

    def forget_waiting(self) -> None:
        """This node was declared dead: what waits here is another one's now."""
        for lane in self.lanes:
            lane.clear()
        self._askers.clear()
        self._answers.clear()
        self._slots.clear_parked()
        self._put_off.clear()

    async def on_start(self) -> None:
        for lane in self.lanes:
            self.supervise(f"pump.{lane.name}", functools.partial(self._pump, lane, lane.ready))
            self.supervise(f"pump.{lane.name}.crowded", functools.partial(self._pump, lane, lane.crowded))

    async def on_stop(self) -> None:
        """Take no more runs off, and let those in flight land; what has not landed is found unconfirmed later.

        A take-off under way ends, and what it commits is sent. What was not on the wire in time is pending again.
        """
        for lane in self.lanes:
            async with self._stages[lane.name].closed():
                await self.cancel(f"pump.{lane.name}")
                await self.cancel(f"pump.{lane.name}.crowded")
        await self._askers.stop()
        unsent = await self._senders.stop(_STOP_WAIT_S)
        self._take_backs.add(flight.take_back() for flight in unsent)

    async def _pump(self, lane: Lane, wanted: Callable[[], Awaitable[None]]) -> None:
        failures = 0
        while True:
            await wanted()
            await self._dispatcher.catch_up()
            failures = 0 if await self._launch_next(lane) else failures + 1
            if failures:
                await self.clock.wait(self._backoff.delay_s(failures))

    async def _launch_next(self, lane: Lane) -> bool:
        batch: Sequence[PendingRun] = ()
        try:
            async with self._stages[lane.name].enter() as go_on:
                batch = lane.take(MOST_IN_TAKE_OFF)
                if batch:  # else the lane's other pump has them
                    await self._launch(lane, batch, go_on)
                self._call(self._slots.stranded())
        except Exception as error:  # noqa: BLE001 - the runs are pending still, and are next when it works again
            log.warning("launcher.take_off_failed", lane=lane.name, runs=len(batch), error=repr(error))
            return False
        return True

    async def _launch(self, lane: Lane, batch: Sequence[PendingRun], go_on: GoOn) -> None:
        """Take a batch off; if the database fails, every run of it is back in the lane or parked."""
        context = self._context
        departures = Departures(context.node.id, self.clock.now(), orphans=list(batch))
        try:
            jobs = await context.database.read(runs.load_dispatch_jobs, context.zone, {run.job_id for run in batch})
            await self._book.learn([job.group_id for job in jobs.values()])
            departures = self._route(lane, batch, jobs)
            leaving = departures.runs()
            taken = TakenOff(set())
            if leaving:
                await go_on()
                told = departures.batch()
                taken = await context.database.write_batch(
                    take_off, context.zone, departures.owner, departures.sent_ms, told
                )
        except UnknownCommitError:
            # If it was committed, it is undone: who waits for that holds up others. The feeder brings the runs.
            self._take_backs.add(departures.take_backs())
            self._give_all_back(departures)
            self._forget_all(departures.runs())
            raise
        except BaseException as error:
            # Also a cancellation that nobody asked for, from something that was waited for.
            (lane.call if isinstance(error, BatchBeforeFailedError) else lane.put_first)(departures.runs())
            self._give_all_back(departures)
            raise
        self._forget_all(leaving)
        self._start(lane, departures, taken)

    def _forget_all(self, runs: Sequence[PendingRun]) -> None:
        self._forget([run.id for run in runs])
        for run in runs if self._answers else ():
            self._answers.pop(run.id, None)

    def _route(self, lane: Lane, batch: Sequence[PendingRun], jobs: Mapping[JobId, DispatchJob]) -> Departures:
        found = Departures(self._context.node.id, self.clock.now())
        for run in batch:
            job = jobs.get(run.job_id)
            if job is None:
                found.orphans.append(run)
            else:
                self._finder.route(found, run, job, self._answers.get(run.id))
        for run, job in found.to_ask:
            if self._askers.has_place(lane, job.group_id):
                self._askers.add(lane, run, job)
            else:
                self._leave_to_feeder(run, functools.partial(self._askers.is_relieved, lane, job.group_id))
        found.flights = [flight for flight in found.flights if self._has_slot(flight)]
        self._slots.release_called(batch)
        lane.hold_back(found.held_back)
        found.broadcasts = [broadcast for broadcast in found.broadcasts if self._has_slots(broadcast)]
        return found

    def _has_slot(self, flight: Flight) -> bool:
        address = flight.candidates[0].address
        if self._slots.take(address, flight.run):
            return True
        if self._slots.has_place(address):
            self._slots.park(address, flight.run)
            self._remember(flight)
        else:
            self._leave_to_feeder(flight.run, functools.partial(self._slots.is_relieved, address))
        return False

    def _remember(self, flight: Flight) -> None:
        """Whom the router chose for a run that is parked: asked again, it would choose another, out of turn."""
        before = self._answers.get(flight.run.id)
        if before is None or before.chosen.candidates[0].address != flight.candidates[0].address:
            self._answers[flight.run.id] = Answers(Chosen(flight.candidates, ()), flight.asked_s)

    def _has_slots(self, broadcast: Broadcast) -> bool:
        """All runs of a broadcast go together, slots or not; within bounds."""
        addresses, run = broadcast.addresses(), broadcast.flight.run
        full = next((address for address in addresses if self._slots.is_overbooked(address, run.due_ms)), None)
        if full is not None:
            self._leave_to_feeder(run, functools.partial(self._slots.takes_broadcasts, full, run.due_ms))
            return False
        for address in addresses:
            self._slots.take_more(address)
        return True

    def _leave_to_feeder(self, run: PendingRun, is_relieved: Callable[[], bool]) -> None:
        """Out of the memory, where it would take everybody's room: it is pending, and the feeder brings it."""
        self._put_off.add(run.job_id, is_relieved)
        self._answers.pop(run.id, None)
        self._forget([run.id])

    def _start(self, lane: Lane, departures: Departures, taken: TakenOff) -> None:
        if taken.matched:
            self._slots.note_take_off((self.clock.now() - departures.sent_ms) / 1000)
        for each in departures.grounded:
            if each.run.id in taken.matched:
                self._dispatcher.fail(each.run, departures.owner, each.message)
        flights = list(departures.flights)
        for broadcast in departures.broadcasts:
            made = taken.shards.get(broadcast.flight.run.id)
            if made is None:
                flights.append(broadcast.flight)
                for candidate in broadcast.others:
                    self._give_back(candidate.address, 1)
            else:
                flights += broadcast.flights(made)
        flying = taken.matched.union(run.id for made in taken.shards.values() for run in made)
        for flight in flights:
            if flight.run.id not in flying:
                self._give_back(flight.candidates[0].address, 1)
                self._finder.keep_turn(flight)
        self._context.counters.ended(each.outcome for each in taken.discarded)
        self._senders.add(lane, [flight for flight in flights if flight.run.id in flying])

    def _on_answered(self, lane: Lane, run: PendingRun, answers: Answers) -> None:
        if not answers.chosen.candidates:
            # It will be sent nowhere; what the questions took counts all the same.
            self._slow_jobs.note(run.job_id, answers.took_s, self.clock.now())
        self._answers[run.id] = answers
        lane.call([run])

    def _on_landed(self, address: str, flights: Sequence[Flight], took_s: float, sent: Sent) -> None:
        if not sent.answered:
            self._slots.slow_down(address)
        onward = {flight.run.id for flight in sent.onward}
        for flight in sent.onward:
            self._slots.take_more(flight.candidates[0].address)
        now_ms = self.clock.now()
        for flight in flights:
            if flight.run.id not in onward:
                self._slow_jobs.note(flight.job.id, flight.asked_s + took_s, now_ms)
        self._give_back(address, len(flights))

    def _give_all_back(self, departures: Departures) -> None:
        for address in departures.addresses():
            self._give_back(address, 1)

    def _give_back(self, address: str, count: int) -> None:
        self._call(self._slots.give_back(address, count, self.clock.monotonic()))
