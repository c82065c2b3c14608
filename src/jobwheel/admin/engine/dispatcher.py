"""Sends runs, to their address and if need be to the next candidates, and records what became of each."""

import asyncio
from collections.abc import Sequence

import msgspec

from jobwheel.admin.domain.ids import NodeId, RunId
from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.run import Outcome, PendingRun
from jobwheel.admin.domain.writes import (
    MOST_MESSAGE_BYTES,
    Accepted,
    RunWrite,
    TakeOff,
    Unconfirmed,
    Unsent,
    cut_message,
)
from jobwheel.admin.engine.addresses import AddressBook, Candidate
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.executor_client import Answer, AnswerKind, ExecutorClient
from jobwheel.admin.engine.requests import trigger_request
from jobwheel.admin.engine.rules import first_check_ms
from jobwheel.admin.engine.run_log_writer import RunLogWriter
from jobwheel.admin.store import run_log
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

_NOT_THERE = (AnswerKind.UNREACHABLE, AnswerKind.STOPPING)
_NO_ANSWER = (AnswerKind.UNREACHABLE, AnswerKind.UNCONFIRMED)


class Flight(msgspec.Struct, frozen=True):
    """A run that is being sent: its candidates in the order in which they are to be tried (never empty).

    `asked_s` is how long the router's questions took.
    """

    run: PendingRun
    job: DispatchJob
    app_name: str
    candidates: Sequence[Candidate]
    heading: str
    owner: NodeId
    asked_s: float = 0.0

    def take_off(self, candidate: Candidate) -> TakeOff:
        return TakeOff(
            run_id=self.run.id,
            address=candidate.address,
            handler=self.job.handler,
            route=self.job.route_strategy,
            instance_id=candidate.instance_id,
        )


class Dispatcher:
    """Sends runs that took off."""

    def __init__(self, context: EngineContext, client: ExecutorClient, book: AddressBook, writer: RunLogWriter) -> None:
        self._context = context
        self._client = client
        self._book = book
        self._writer = writer

    async def send(self, flights: Sequence[Flight]) -> bool:
        """Send runs whose take-off to one address matched, in one request; whether the address answered.

        What became of each is put into the run log's writer. They are of one app name; several only to an address that
        takes batches. Those that certainly did not arrive go on to their next candidates.
        """
        now_ms = self._context.clock.now()
        for flight in flights:
            self._context.counters.sent(max(0, now_ms - flight.run.due_ms) / 1000)
        candidate = flights[0].candidates[0]
        passed_over = self._passed_over(flights[0], candidate)
        if passed_over is not None:
            await self._send_on_all([(flight, flight.heading + passed_over) for flight in flights])
            return True
        mine = [flight for flight in flights if not self._may_be_dead(flight) or await self._still_owns(flight)]
        answers = await self._ask(candidate, mine)
        onward = []
        for flight, answer in zip(mine, answers, strict=True):
            message = flight.heading + self._context.messages.asked(candidate.address, answer)
            if answer.kind in _NOT_THERE:
                onward.append((flight, message))
            else:
                self._writer.add(self._outcome(flight, candidate, answer, _bounded(message)))
        if onward:
            self._book.mark_unreachable(candidate.address)
            await self._send_on_all(onward)
        return not answers or answers[0].kind not in _NO_ANSWER

    async def _ask(self, candidate: Candidate, flights: Sequence[Flight]) -> Sequence[Answer]:
        if not flights:
            return ()
        requests = [trigger_request(flight.run, flight.job, candidate.instance_id) for flight in flights]
        app_name = flights[0].app_name
        if len(requests) == 1:
            return (await self._client.run(candidate.address, app_name, requests[0]),)
        return await self._client.run_batch(candidate.address, app_name, requests)

    async def _send_on_all(self, onward: Sequence[tuple[Flight, str]]) -> None:
        await asyncio.gather(*(self._send_on(flight, message) for flight, message in onward))

    async def _send_on(self, flight: Flight, message: str) -> None:
        """The first candidate was not there: try the others, one after the other."""
        taken = flight.candidates[0]
        for candidate in flight.candidates[1:]:
            passed_over = self._passed_over(flight, candidate)
            if passed_over is not None:
                message += passed_over
                continue
            if not await self._redirect(flight, taken, candidate):
                return
            taken = candidate
            if self._may_be_dead(flight) and not await self._still_owns(flight):
                return
            request = trigger_request(flight.run, flight.job, candidate.instance_id)
            answer = await self._client.run(candidate.address, flight.app_name, request)
            message += self._context.messages.asked(candidate.address, answer)
            if answer.kind not in _NOT_THERE:
                self._writer.add(self._outcome(flight, candidate, answer, _bounded(message)))
                return
            self._book.mark_unreachable(candidate.address)
        self.fail(flight.run, message + self._context.messages.none_reached())

    def _passed_over(self, flight: Flight, candidate: Candidate) -> str | None:
        """Why a candidate is not asked at all, if it is not: what has left or was just out of reach is the next's."""
        if self._book.has_left(flight.job.group_id, candidate.address):
            return self._context.messages.left(candidate.address)
        if len(flight.candidates) > 1 and not self._book.is_candidate(flight.job.group_id, candidate.address):
            return self._context.messages.out(candidate.address)
        return None

    def fail(self, run: PendingRun, message: str, outcome: Outcome = Outcome.FAILED) -> None:
        """End a run that took off and is not sent anywhere."""
        self._writer.add(Unsent(run.id, self._context.clock.now(), 500, outcome, _bounded(message)))

    def _may_be_dead(self, flight: Flight) -> bool:
        """Whether this process may have been frozen since the take-off, and the run adopted by another node."""
        return not self._context.node.is_fresh or flight.owner != self._context.node.id

    async def _still_owns(self, flight: Flight) -> bool:
        """Asked before a byte is written: beat, and see whether the run is still being sent by who took it off."""
        await self._context.node.confirm()
        if await self._context.database.read(run_log.is_sending, flight.owner, flight.run.id):
            return True
        log.warning("dispatcher.run_not_mine_any_more", run_id=flight.run.id, node=flight.owner)
        return False

    async def _redirect(self, flight: Flight, before: Candidate, candidate: Candidate) -> bool:
        return await self._context.database.write(
            run_log.redirect, self._context.node.id, flight.take_off(candidate), before.address
        )

    def _outcome(self, flight: Flight, candidate: Candidate, answer: Answer, message: str) -> RunWrite:
        run_id, now_ms = flight.run.id, self._context.clock.now()
        if answer.kind is AnswerKind.ACCEPTED:
            return Accepted(run_id, now_ms, answer.instance_id, message)
        if answer.kind is AnswerKind.UNCONFIRMED:
            # By the database's clock, which nobody sets: how long ago this was decides whether the run is lost.
            since_ms = self._context.database.now_ms()
            ours = candidate.instance_id is not None
            return Unconfirmed(run_id, since_ms, first_check_ms(since_ms, ours=ours), message)
        return refused(run_id, now_ms, answer, message)


def _bounded(message: str) -> str:
    # Its parts are clean; many addresses make it long. No character has more than four bytes.
    return message if len(message) * 4 <= MOST_MESSAGE_BYTES else cut_message(message)


def refused(run_id: RunId, now_ms: int, answer: Answer, message: str) -> Unsent:
    """The end of a run that an executor did not take."""
    outcome = Outcome.DISCARDED if answer.discarded else Outcome.FAILED
    # To the reference, 0 and 200 without a result mean "running".
    code = 500 if answer.code in (0, 200) else answer.code
    return Unsent(run_id, now_ms, code, outcome, message)
