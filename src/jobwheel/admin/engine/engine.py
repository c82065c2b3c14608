"""The engine as a whole: its parts in their order of start, and its two faces for the services above."""

from collections.abc import Sequence
from typing import ClassVar

from jobwheel.admin.domain.ids import NodeId, RunId
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.domain.writes import Cancelled
from jobwheel.admin.engine.addresses import AddressBook
from jobwheel.admin.engine.claim import ClaimLimits
from jobwheel.admin.engine.claimer import Claimer
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.dispatcher import Dispatcher
from jobwheel.admin.engine.executor_client import ExecutorClient
from jobwheel.admin.engine.feeder import Feeder
from jobwheel.admin.engine.figures import EngineFigures, HealthReason
from jobwheel.admin.engine.launcher import Launcher
from jobwheel.admin.engine.pace import claimed_ahead_s
from jobwheel.admin.engine.recovery import Recovery
from jobwheel.admin.engine.routing import Routers
from jobwheel.admin.engine.run_log_writer import RunLogWriter
from jobwheel.admin.engine.take_backs import TakeBacks
from jobwheel.admin.engine.wheel import TimingWheel
from jobwheel.admin.store import awaited_ends, registry
from jobwheel.kernel.errors import JobwheelError
from jobwheel.kernel.loop import PeriodicLoop
from jobwheel.kernel.service import ServiceGroup

_PASS_EVERY_S = 1.0
_SILENT_AFTER_S = 15.0
_UPKEEP_EVERY_S = 60.0
_LOOK_FOR_ENDS_EVERY_S = 5.0


class ClockOffError(JobwheelError):
    """A node of a cluster whose host has another time than the database."""

    code: ClassVar[str] = "clock_off"

    def __init__(self, difference_s: float) -> None:
        super().__init__(
            f"this host's clock is {difference_s:+.1f} s off the database's, so this node plans nothing: set it right "
            "(chrony, ntpd); the other nodes go on"
        )


class Engine(ServiceGroup):
    """Claims, feeds, turns, launches, records, recovers.

    Satisfies what the services ask of a scheduler (`node_id`, `wake`, `fly`, `carry_out_kills`) and of an engine's
    status (`reasons`, `collect`). The database is started before it and stopped after it.
    """

    def __init__(self, context: EngineContext, client: ExecutorClient) -> None:
        clock = context.clock
        self._context = context
        self.addresses = AddressBook(context.database)
        client.use_tokens(self.addresses.token_for)
        client.use_registrations(self.addresses.is_newer)
        self.writer = RunLogWriter(context, self.wake, self._feed, self.fly)
        self._routers = Routers()
        self._started_s = clock.monotonic()
        take_backs = TakeBacks(context)
        dispatcher = Dispatcher(context, client, self.addresses, self.writer, take_backs)
        self.wheel = TimingWheel(self._on_due, clock, context.limits.wheel_capacity)
        self.launcher = Launcher(
            context, client, self.addresses, self._routers, dispatcher, take_backs, self.wheel.forget
        )
        given = context.limits
        ahead_s = claimed_ahead_s(given.look_ahead_s)
        limits = ClaimLimits(given.look_ahead_s, given.claim_batch, given.misfire_most, ahead_s)
        self._claimer = Claimer(
            context.database, context.zone, clock, lambda: context.node.id, self.wheel.add, limits, self.is_behind
        )
        recovery = Recovery(context, self.addresses, client, self.writer, take_backs, self.launcher.is_in_flight)
        self.claims = PeriodicLoop("claimer", self._claim, _PASS_EVERY_S, clock)
        self._feeder = Feeder(context, self.wheel, self.launcher.put_off_jobs)
        self._feeding = PeriodicLoop("feeder", self._feeder.run_once, _PASS_EVERY_S, clock)
        self._recovering = PeriodicLoop("recovery", recovery.run_once, _PASS_EVERY_S, clock)
        self._loops = (
            PeriodicLoop("addresses", self._refresh_addresses, _PASS_EVERY_S, clock),
            self._feeding,
            self.claims,
            self._recovering,
            PeriodicLoop("awaited_ends", self._let_go_on, _LOOK_FOR_ENDS_EVERY_S, clock),
            PeriodicLoop("upkeep", self._upkeep, _UPKEEP_EVERY_S, clock),
        )
        # The node adopts what dead ones left before the first claim; the wheel stops before the launcher, and the
        # writer last, so that whatever took off is recorded, or taken back before the node hands over what is pending.
        context.node.forget = self._forget
        parts = (context.node, self.writer, take_backs, self.launcher, self.wheel, *self._loops)
        super().__init__("engine", clock, parts)

    async def on_start(self) -> None:
        self._started_s = self.clock.monotonic()
        # Known before the first claim: a run without a live address fails.
        await self._context.node.start()
        await self.addresses.refresh()
        await super().on_start()

    @property
    def node_id(self) -> NodeId:
        return self._context.node.id

    def wake(self) -> None:
        """A schedule changed: claim at once."""
        self.claims.wake()

    def fly(self, runs: Sequence[PendingRun]) -> None:
        """Pending runs of this node, just committed: into the wheel. Those beyond its capacity the feeder brings."""
        self.wheel.add(runs)

    def is_behind(self) -> bool:
        """Whether a claim's worth of runs that are due, or of what came of them, waits to be written."""
        most = self._context.limits.claim_batch
        return self.launcher.waiting >= most or len(self.writer) >= most

    async def carry_out_kills(self, pending: Sequence[RunId]) -> None:
        """Kills were asked for and committed: end the runs that are pending, and have executors told of the others.

        Returns once the pending ones have ended; whatever happens meanwhile, some node's recovery ends them.
        """
        now_ms, message = self.clock.now(), self._context.messages.killed_unsent()
        self._recovering.wake()
        await self.writer.write_all([Cancelled(run_id, now_ms, message) for run_id in pending])

    def reasons(self) -> list[HealthReason]:
        """Why the engine is not healthy."""
        reasons = []
        age_s = self._last_pass_age_s()
        if age_s is None:
            age_s = self.clock.monotonic() - self._started_s
        if age_s > _SILENT_AFTER_S:
            error = self.claims.last_error or "it has not come to an end"
            reasons.append(HealthReason("no_scheduling_pass", f"no scheduling pass for {age_s:.0f} s: {error}"))
        if self._context.node.clock_is_off:
            off_s = self._context.node.clock_difference_s
            reasons.append(
                HealthReason("clock_off", f"this host's clock is {off_s:+.1f} s off the database's: it plans nothing")
            )
        reasons.extend(
            HealthReason(
                "loop_failing", f"the {loop.name} loop failed {loop.failures_in_a_row} times: {loop.last_error}"
            )
            for loop in self._loops
            if loop.failures_in_a_row >= 3
        )
        return reasons

    def collect(self) -> EngineFigures:
        """The figures of this moment."""
        counters = self._context.counters
        return EngineFigures(
            passes=self.claims.passes,
            failed_passes=self.claims.failures,
            last_pass_age_s=self._last_pass_age_s(),
            wheel_size=len(self.wheel),
            lanes=self.launcher.lane_figures(),
            parked=self.launcher.parked,
            left_in_database=self._feeder.left,
            sends_in_flight=self.launcher.sends_in_flight,
            runs_sent=counters.runs_sent,
            clock_difference_s=self._context.node.clock_difference_s,
            lateness=counters.lateness(),
            outcomes=dict(counters.outcomes),
            executors=self.addresses.figures(),
        )

    async def _claim(self) -> int:
        if self._context.node.clock_is_off:
            raise ClockOffError(self._context.node.clock_difference_s)
        await self._context.node.confirm()
        return await self._claimer.run_once()

    def _feed(self) -> None:
        self._feeding.wake()

    def _forget(self) -> None:
        self.wheel.forget_all()
        self.launcher.forget_waiting()

    def _on_due(self, due: Sequence[PendingRun]) -> None:
        self.launcher.submit(due)

    def _last_pass_age_s(self) -> float | None:
        last_s = self.claims.last_success_s
        return None if last_s is None else self.clock.monotonic() - last_s

    async def _refresh_addresses(self) -> None:
        await self.addresses.refresh()
        await self.addresses.remove_left()
        if self.addresses.changed:
            # Addresses whose beats ended leave the stored lists too, which Java admins and people read.
            self.addresses.changed = False
            database = self._context.database
            try:
                await database.write(registry.store_address_lists, self._context.zone, database.now_ms())
            except Exception:
                self.addresses.changed = True
                raise

    async def _let_go_on(self) -> None:
        if self._context.node.clock_is_off:
            return
        database = self._context.database
        if await database.read(awaited_ends.jobs_without_end):
            await database.write(awaited_ends.let_go_on, self.clock.now())

    async def _upkeep(self) -> None:
        self._routers.forget_unused(self.clock.now())
        database = self._context.database
        await database.write(registry.remove_forgotten, database.now_ms())
