"""Where each run of a batch goes: to which addresses, in which order, or nowhere."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.policies import RouteStrategy, RunLimitOverflow
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.domain.writes import TakeBack, TakeOff
from jobwheel.admin.engine.addresses import AddressBook, Candidate
from jobwheel.admin.engine.answers import Answers
from jobwheel.admin.engine.broadcasts import Broadcast
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.dispatcher import Flight
from jobwheel.admin.engine.routing import Routers, UnknownStrategyError
from jobwheel.admin.store import take_off
from jobwheel.admin.store.limits import Turn, turn_of

MOST_SHARDS = 2000
"""One take-off makes so many shards at most, or those of one broadcast: it must not hold everybody up."""


class Grounded(msgspec.Struct, frozen=True):
    """A run that takes off only to fail: there is nowhere to send it."""

    run: PendingRun
    job: DispatchJob
    message: str

    def take_off(self) -> TakeOff:
        return TakeOff(self.run.id, "", self.job.handler, self.job.route_strategy, None)


@dataclass(slots=True)
class Departures:
    """What is to become of the runs of a batch.

    Attributes:
        owner: the node whose runs they are.
        sent_ms: when they take off.
        flights: runs with an address, those of `broadcasts` left out.
        grounded: runs without one.
        orphans: runs whose job is gone.
        to_ask: runs whose addresses are to be asked first.
        held_back: broadcasts that would make more shards than one take-off writes.
        over_limit: the jobs whose runs over their limit do not wait, and what is said of these.
    """

    owner: NodeId
    sent_ms: int
    flights: list[Flight] = field(default_factory=list)
    broadcasts: list[Broadcast] = field(default_factory=list)
    grounded: list[Grounded] = field(default_factory=list)
    orphans: list[PendingRun] = field(default_factory=list)
    to_ask: list[tuple[PendingRun, DispatchJob]] = field(default_factory=list)
    held_back: list[PendingRun] = field(default_factory=list)
    over_limit: dict[JobId, str] = field(default_factory=dict)
    _shards: int = 0

    def has_room_for(self, shards: int) -> bool:
        """Whether another broadcast of so many shards may go; if so, they are counted. One may in any case."""
        if self._shards and self._shards + shards > MOST_SHARDS:
            return False
        self._shards += shards
        return True

    def all_flights(self) -> list[Flight]:
        return [*self.flights, *(each.flight for each in self.broadcasts)] if self.broadcasts else self.flights

    def addresses(self) -> list[str]:
        """Where the flights go: each has a slot there, the shards that are not made yet as well."""
        shards = [address for each in self.broadcasts for address in each.addresses()]
        return [*(flight.candidates[0].address for flight in self.flights), *shards]

    def runs(self) -> list[PendingRun]:
        """The runs that take off."""
        return [*(each.run for each in self.all_flights()), *(each.run for each in self.grounded), *self.orphans]

    def take_backs(self) -> list[TakeBack]:
        """What makes the runs that took off pending again, if they did."""
        broadcasts = {each.flight.run.id for each in self.broadcasts}
        return [TakeBack(run.id, self.owner, self.sent_ms, run.id in broadcasts) for run in self.runs()]

    def batch(self) -> take_off.Batch:
        """What the database is told."""
        flights = self.all_flights()
        take_offs = [flight.take_off(flight.candidates[0]) for flight in flights]
        take_offs += [each.take_off() for each in self.grounded]
        return take_off.Batch(
            take_offs,
            _limited(flights),
            self._discards(flights),
            [each.shards() for each in self.broadcasts],
            [run.id for run in self.orphans],
        )

    def _discards(self, flights: Sequence[Flight]) -> dict[RunId, str]:
        if not self.over_limit:
            return {}
        jobs = self.over_limit
        return {each.run.id: each.heading + jobs[each.job.id] for each in flights if each.job.id in jobs}


class RouteFinder:
    """Finds the addresses of runs, by the job's strategy, the person's choice, or the shard's address."""

    def __init__(self, context: EngineContext, book: AddressBook, routers: Routers) -> None:
        self._context = context
        self._book = book
        self._routers = routers
        self._known: tuple[Sequence[Candidate], tuple[str, ...]] = ((), ())

    def candidates(self, run: PendingRun, job: DispatchJob) -> Sequence[Candidate]:
        """The addresses that the run may go to, before the strategy has its say."""
        candidates = self._book.candidates(job.group_id)
        if run.named_addresses:
            return [each for each in candidates if each.address in run.named_addresses]
        return candidates

    def route(
        self,
        departures: Departures,
        run: PendingRun,
        job: DispatchJob,
        answers: Answers | None,
    ) -> None:
        """Put the run where it belongs. `answers` is what its router chose already, if it did."""
        if job.damage is not None:
            heading = self._heading(run, job, self.candidates(run, job))
            told = self._context.messages.damaged(job.damage)
            departures.grounded.append(Grounded(run, job, heading + told))
            return
        if job.run_limit is not None and job.run_limit_overflow == RunLimitOverflow.DISCARD:
            departures.over_limit[job.id] = self._context.messages.over_limit(job.run_limit)
        candidates = self.candidates(run, job)
        if answers is not None:
            # A shard has its own address, and is named in its message, each time.
            answers = answers.as_it_stands(candidates) if run.shard is None else None
        asks = bool(candidates) and run.shard is None and self._routers.asks(job.route_strategy)
        if asks and answers is None:
            departures.to_ask.append((run, job))
            return
        is_broadcast = run.shard is None and job.route_strategy == RouteStrategy.SHARDING_BROADCAST
        if is_broadcast and not departures.has_room_for(len(candidates)):
            departures.held_back.append(run)
            return
        heading = self._heading(run, job, candidates)
        if answers is not None:
            self._follow(departures, run, job, answers, heading)
        elif not candidates:
            departures.grounded.append(Grounded(run, job, heading + self._nowhere(run, job)))
        elif run.shard is not None:
            had = [each for each in candidates if each.address == run.address]
            heading += self._context.messages.shard(run.shard.index, run.shard.total)
            departures.flights.append(self._flight(departures, run, job, (had or candidates)[:1], heading))
        elif is_broadcast:
            flight = self._flight(departures, run, job, candidates[:1], heading)
            departures.broadcasts.append(Broadcast(flight, candidates[1:], self._context.messages))
        else:
            self._order(departures, run, job, candidates, heading)

    def keep_turn(self, flight: Flight) -> None:
        """A run did not take off: if it waits for room it goes where it would have gone, else the job's next one."""
        run, job, now_ms = flight.run, flight.job, self._context.clock.now()
        if job.run_limit is None:
            return
        if job.run_limit_overflow == RunLimitOverflow.DISCARD:
            self._routers.turns.pass_on(job.id, flight.candidates, now_ms)
        else:
            self._routers.turns.keep(run.id, flight.candidates, now_ms)

    def _order(
        self,
        departures: Departures,
        run: PendingRun,
        job: DispatchJob,
        candidates: Sequence[Candidate],
        heading: str,
    ) -> None:
        now_ms = self._context.clock.now()
        kept = None if job.run_limit is None else self._routers.turns.take(run.id, job.id, candidates, now_ms)
        try:
            ordered = kept or self._routers.order(job.route_strategy, job.id, candidates, now_ms)
        except UnknownStrategyError as error:
            departures.grounded.append(Grounded(run, job, heading + self._context.messages.unknown_strategy(error)))
        else:
            departures.flights.append(self._flight(departures, run, job, ordered, heading))

    def _follow(
        self, departures: Departures, run: PendingRun, job: DispatchJob, answers: Answers, heading: str
    ) -> None:
        chosen = answers.chosen
        heading += "".join(self._context.messages.asked_first(address, answer) for address, answer in chosen.asked)
        if not chosen.candidates:
            why = self._context.messages.none_said_yes(chosen.not_asked, self._context.limits.search_s)
            departures.grounded.append(Grounded(run, job, heading + why))
        else:
            flight = self._flight(departures, run, job, chosen.candidates, heading)
            departures.flights.append(msgspec.structs.replace(flight, asked_s=answers.took_s))

    def _heading(self, run: PendingRun, job: DispatchJob, candidates: Sequence[Candidate]) -> str:
        addresses = self._addresses_of(candidates)
        fixed = self._book.is_fixed(job.group_id)
        # Of a first run the job says so when it fails; from then on the row does.
        retries_left = max(0, job.retry_count if run.attempt == 1 else run.retries_left)
        return self._context.messages.heading(
            self._context.node.id, run, job, addresses, fixed=fixed, retries_left=retries_left
        )

    def _addresses_of(self, candidates: Sequence[Candidate]) -> tuple[str, ...]:
        # The book gives the same ones until something changes, and most runs of a batch are of one group.
        if candidates is not self._known[0]:
            self._known = candidates, tuple([each.address for each in candidates])
        return self._known[1]

    def _nowhere(self, run: PendingRun, job: DispatchJob) -> str:
        messages, book, group_id = self._context.messages, self._book, job.group_id
        if book.app_name(group_id) is None:
            return messages.no_group(group_id)
        drained = [address for address in book.all_addresses(group_id) if book.is_draining(group_id, address)]
        told = messages.drained(drained) if drained else ""
        if run.named_addresses:
            return told + messages.named_not_live(run.named_addresses)
        fixed = book.is_fixed(group_id)
        there = (address for address in book.all_addresses(group_id) if not book.has_left(group_id, address))
        out = [address for address in there if address not in drained]
        if out or drained:
            return told + (messages.all_out(out, fixed=fixed) if out else "")
        return messages.list_empty() if fixed else messages.no_address()

    def _flight(
        self, departures: Departures, run: PendingRun, job: DispatchJob, candidates: Sequence[Candidate], heading: str
    ) -> Flight:
        app_name = self._book.app_name(job.group_id) or ""
        # Addresses named by a person are tried one at most.
        tried = candidates[:1] if run.named_addresses else candidates
        return Flight(run, job, app_name, tried, heading, departures.owner, departures.sent_ms)


def _limited(flights: Sequence[Flight]) -> Mapping[JobId, Mapping[RunId, Turn]]:
    """The runs of jobs that have a limit."""
    limited = defaultdict[JobId, dict[RunId, Turn]](dict)
    for flight in flights:
        if flight.job.run_limit is not None:
            limited[flight.job.id][flight.run.id] = turn_of(flight.run)
    return limited
