"""Sends one run, to its address and if need be to the next candidates, and records what became of it."""

from collections.abc import Sequence

import msgspec

from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.run import Outcome, PendingRun
from jobwheel.admin.domain.writes import Accepted, RunWrite, TakeOff, Unconfirmed, Unsent
from jobwheel.admin.engine import trigger_message
from jobwheel.admin.engine.addresses import AddressBook, Candidate
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.executor_client import Answer, AnswerKind, ExecutorClient
from jobwheel.admin.engine.requests import trigger_request
from jobwheel.admin.engine.rules import first_check_ms
from jobwheel.admin.engine.run_log_writer import RunLogWriter
from jobwheel.admin.store import run_log


class Flight(msgspec.Struct, frozen=True):
    """A run that is being sent: its candidates in the order in which they are to be tried (never empty)."""

    run: PendingRun
    job: DispatchJob
    app_name: str
    candidates: Sequence[Candidate]
    heading: str

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

    async def send(self, flight: Flight) -> None:
        """Send a run whose take-off matched, and put what became of it into the run log's writer."""
        clock = self._context.clock
        self._context.counters.sent(max(0, clock.now() - flight.run.due_ms) / 1000)
        message = flight.heading
        for position, candidate in enumerate(flight.candidates):
            if position > 0 and not await self._redirect(flight, position):
                return
            request = trigger_request(flight.run, flight.job, candidate.instance_id)
            answer = await self._client.run(candidate.address, flight.app_name, request)
            message += trigger_message.asked(candidate.address, answer)
            if answer.kind not in (AnswerKind.UNREACHABLE, AnswerKind.STOPPING):
                self._writer.add(_write(flight, candidate, answer, message, clock.now()))
                return
            self._book.mark_unreachable(candidate.address)
        self.fail(flight.run, message + "no address could be reached\n")

    def fail(self, run: PendingRun, message: str) -> None:
        """End a run that took off and could not be sent anywhere."""
        self._writer.add(Unsent(run.id, self._context.clock.now(), 500, Outcome.FAILED, message))

    async def _redirect(self, flight: Flight, position: int) -> bool:
        before, candidate = flight.candidates[position - 1], flight.candidates[position]
        return await self._context.database.write(
            run_log.redirect, self._context.node.id, flight.take_off(candidate), before.address
        )


def _write(flight: Flight, candidate: Candidate, answer: Answer, message: str, now_ms: int) -> RunWrite:
    run_id = flight.run.id
    if answer.kind is AnswerKind.ACCEPTED:
        return Accepted(run_id, now_ms, answer.instance_id, message)
    if answer.kind is AnswerKind.UNCONFIRMED:
        return Unconfirmed(run_id, now_ms, first_check_ms(now_ms, ours=candidate.instance_id is not None), message)
    outcome = Outcome.DISCARDED if answer.discarded else Outcome.FAILED
    return Unsent(run_id, now_ms, answer.code, outcome, message)
