"""Sends runs to an address, records what became of each, and says which go on to their next candidate."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from jobwheel.admin.domain.ids import NodeId, RunId
from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.run import Outcome, PendingRun
from jobwheel.admin.domain.writes import (
    MOST_MESSAGE_BYTES,
    Accepted,
    Cancelled,
    RunWrite,
    TakeBack,
    TakeOff,
    Unconfirmed,
    Unsent,
    cut_message,
)
from jobwheel.admin.engine.addresses import AddressBook, Candidate
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.executor_answers import NOT_SENT, Answer, AnswerKind
from jobwheel.admin.engine.executor_client import ExecutorClient
from jobwheel.admin.engine.parents import NO_RUN, load_parents
from jobwheel.admin.engine.requests import trigger_request
from jobwheel.admin.engine.rules import first_check_ms, first_look_ms, is_sent_again
from jobwheel.admin.engine.run_log_writer import RunLogWriter
from jobwheel.admin.engine.take_backs import TakeBacks
from jobwheel.admin.store import run_log
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.messages import Parent

log = get_logger(__name__)

_NOT_THERE = (AnswerKind.UNREACHABLE, AnswerKind.STOPPING)
_NO_ANSWER = (AnswerKind.UNREACHABLE, AnswerKind.UNCONFIRMED)


class Flight(msgspec.Struct, frozen=True):
    """A run that is being sent: its candidates in the order in which they are to be tried (never empty).

    `asked_s` is how long the router's questions took, and the addresses that were tried before; `redirected` says that
    there were some.
    """

    run: PendingRun
    job: DispatchJob
    app_name: str
    candidates: Sequence[Candidate]
    heading: str
    owner: NodeId
    sent_ms: int
    asked_s: float = 0.0
    redirected: bool = False

    def take_off(self, candidate: Candidate) -> TakeOff:
        return TakeOff(
            run_id=self.run.id,
            address=candidate.address,
            handler=self.job.handler,
            route=self.job.route_strategy,
            instance_id=candidate.instance_id,
        )

    def take_back(self) -> TakeBack:
        return TakeBack(self.run.id, self.owner, self.sent_ms)


class Sent(msgspec.Struct, frozen=True):
    """What came of a request.

    Attributes:
        answered: whether the address answered.
        onward: the runs that certainly did not arrive, and go on to their next candidate.
    """

    answered: bool
    onward: Sequence[Flight] = ()


class Dispatcher:
    """Sends runs that took off.

    What certainly was not written anywhere and goes to no next candidate is taken back, also if the sending is broken
    off by a stop.
    """

    def __init__(
        self,
        context: EngineContext,
        client: ExecutorClient,
        book: AddressBook,
        writer: RunLogWriter,
        take_backs: TakeBacks,
    ) -> None:
        self._context = context
        self._client = client
        self._book = book
        self._writer = writer
        self._take_backs = take_backs

    async def catch_up(self) -> None:
        """Return once what came of earlier sends is written, but for what may wait."""
        await self._writer.catch_up()

    async def send(self, flights: Sequence[Flight]) -> Sent:
        """Send runs whose take-off to one address matched, in one request.

        What became of each is put into the run log's writer. They are of one app name; several only to an address that
        takes batches.
        """
        began_s, candidate = self._context.clock.monotonic(), flights[0].candidates[0]
        self._count(flights)
        onward = []
        try:
            parents = await self._parents(candidate, flights)
            mine = [flight for flight in flights if await self._is_mine(flight)]
        except BaseException as error:
            # Nothing of them was written anywhere: they can wait.
            log.warning("dispatcher.not_confirmed", runs=len(flights), error=repr(error))
            self._take_back(flights)
            if isinstance(error, Exception):
                return Sent(answered=True)
            raise
        there = []
        for flight in mine:
            passed_over = self._passed_over(flight, candidate)
            if passed_over is None:
                there.append(flight)
            else:
                onward.append((flight, flight.heading + passed_over))
        try:
            answers = await self._ask(candidate, there, parents)
        except BaseException:
            self._take_back(flight for flight, _ in onward)
            raise
        for flight, answer in zip(there, answers, strict=True):
            if answer is NOT_SENT:
                self._take_back([flight])
                continue
            message = flight.heading + self._context.messages.asked(candidate.address, answer)
            if answer.kind in _NOT_THERE:
                self._book.mark_unreachable(candidate.address)
                onward.append((flight, message))
            else:
                self._writer.add(self._outcome(flight, candidate, answer, _bounded(message)))
        answered = not answers or answers[0].kind not in _NO_ANSWER
        return Sent(answered, await self._redirect(onward, began_s)) if onward else Sent(answered)

    def _count(self, flights: Sequence[Flight]) -> None:
        now_ms = self._context.clock.now()
        for flight in flights:
            if not flight.redirected:
                self._context.counters.sent(max(0, now_ms - flight.run.due_ms) / 1000)

    async def _parents(self, candidate: Candidate, flights: Sequence[Flight]) -> Mapping[RunId, Parent]:
        if candidate.instance_id is None:
            return {}
        return await load_parents(self._context.database, (flight.run.parent_run_id for flight in flights))

    async def _ask(
        self, candidate: Candidate, flights: Sequence[Flight], parents: Mapping[RunId, Parent]
    ) -> Sequence[Answer]:
        if not flights:
            return ()
        requests = [
            trigger_request(
                flight.run, flight.job, candidate.instance_id, parents.get(flight.run.parent_run_id or NO_RUN)
            )
            for flight in flights
        ]
        app_name = flights[0].app_name
        if len(requests) == 1:
            return (await self._client.run(candidate.address, app_name, requests[0]),)
        return await self._client.run_batch(candidate.address, app_name, requests)

    async def _redirect(self, onward: Sequence[tuple[Flight, str]], began_s: float) -> list[Flight]:
        """Give runs that certainly did not arrive their next candidates; return those that may be sent there."""
        took_s = self._context.clock.monotonic() - began_s
        moved = [each for each in (self._next(flight, message, took_s) for flight, message in onward) if each]
        if not moved:
            return []
        left = {flight.run.id: flight.candidates[0].address for flight, _ in onward}
        moves = [(flight.take_off(flight.candidates[0]), left[flight.run.id]) for flight in moved]
        try:
            matched = await self._context.database.write_batch(run_log.redirect, self._context.node.id, moves)
        except BaseException as error:
            # Nothing of them was written anywhere: they can wait.
            log.warning("dispatcher.redirect_failed", runs=len(moved), error=repr(error))
            self._take_back(moved)
            if isinstance(error, Exception):
                return []
            raise
        for flight in moved:
            if flight.run.id not in matched:
                self._cancel(flight)
        return [flight for flight in moved if flight.run.id in matched]

    def _next(self, flight: Flight, message: str, took_s: float) -> Flight | None:
        """The run on its way to the next candidate; None, and it fails, if there is none, or its time is up.

        A thousand addresses at which every connection hangs would take an hour. What it waited for itself does not
        count: overload delays, and fails nothing.
        """
        within_s = self._context.limits.search_s
        if len(flight.candidates) > 1 and flight.asked_s + took_s >= within_s:
            self.fail(
                flight.run,
                flight.owner,
                message + self._context.messages.none_in_time(len(flight.candidates) - 1, within_s),
            )
            return None
        for at, candidate in enumerate(flight.candidates[1:], 1):
            passed_over = self._passed_over(flight, candidate)
            if passed_over is None:
                return msgspec.structs.replace(
                    flight,
                    candidates=flight.candidates[at:],
                    heading=message,
                    asked_s=flight.asked_s + took_s,
                    redirected=True,
                )
            message += passed_over
        self.fail(flight.run, flight.owner, message + self._context.messages.none_reached())
        return None

    def _cancel(self, flight: Flight) -> None:
        """It is not this node's any more, or a kill was asked for; then that is its end, since it arrived nowhere."""
        message = self._context.messages.killed_unsent()
        self._writer.add(Cancelled(flight.run.id, self._context.clock.now(), message))

    def _take_back(self, flights: Iterable[Flight]) -> None:
        self._take_backs.add([flight.take_back() for flight in flights])

    def _passed_over(self, flight: Flight, candidate: Candidate) -> str | None:
        """Why a candidate is not asked at all, if it is not.

        What has left, is drained, or was out of reach a moment ago is the next one's.
        """
        if self._book.has_left(flight.job.group_id, candidate.address):
            return self._context.messages.left(candidate.address)
        if self._book.is_draining(flight.job.group_id, candidate.address):
            return self._context.messages.drained([candidate.address])
        if self._book.is_out(flight.job.group_id, candidate.address):
            return self._context.messages.out(candidate.address)
        return None

    def fail(self, run: PendingRun, owner: NodeId, message: str) -> None:
        """End a run that `owner` took off and that is not sent anywhere."""
        self._writer.add(Unsent(run.id, self._context.clock.now(), 500, Outcome.FAILED, _bounded(message), owner))

    async def _is_mine(self, flight: Flight) -> bool:
        """Asked before a byte is written: whether the run is still this node's.

        If this process may have been frozen since the take-off, another one may have adopted the run: beat, and see
        whether it is still being sent by who took it off.
        """
        context = self._context
        if context.node.is_fresh and flight.owner == context.node.id:
            return True
        await context.node.confirm()
        if await context.database.read(run_log.is_sending, flight.owner, flight.run.id):
            return True
        log.warning("dispatcher.run_not_mine_any_more", run_id=flight.run.id, node=flight.owner)
        return False

    def _outcome(self, flight: Flight, candidate: Candidate, answer: Answer, message: str) -> RunWrite:
        run_id, now_ms = flight.run.id, self._context.clock.now()
        if answer.kind is AnswerKind.ACCEPTED:
            heard_ms = self._context.database.now_ms()
            return Accepted(run_id, now_ms, answer.instance_id, message, heard_ms, first_look_ms(heard_ms))
        if answer.kind is AnswerKind.UNCONFIRMED:
            # By the database's clock, which nobody sets: how long ago this was decides whether the run is lost.
            since_ms = self._context.database.now_ms()
            resent = is_sent_again(candidate.instance_id, flight.job)
            return Unconfirmed(run_id, since_ms, first_check_ms(since_ms, resent=resent), message)
        return refused(run_id, now_ms, answer, message, flight.owner)


def _bounded(message: str) -> str:
    # Its parts are clean; many addresses make it long. No character has more than four bytes.
    if len(message) * 4 <= MOST_MESSAGE_BYTES:
        return message
    # The last line says how it ended: what is cut out stands before it.
    before, _, end = message.removesuffix("\n").rpartition("\n")
    end = cut_message(end, MOST_MESSAGE_BYTES // 2)
    return f"{cut_message(before, MOST_MESSAGE_BYTES - len(end.encode()) - 2)}\n{end}\n"


def refused(run_id: RunId, now_ms: int, answer: Answer, message: str, owner: NodeId | None = None) -> Unsent:
    """The end of a run that an executor did not take; with `owner` if that node is sending it still."""
    outcome = Outcome.DISCARDED if answer.discarded else Outcome.FAILED
    # To the reference, 0 and 200 without a result mean "running".
    code = 500 if answer.code in (0, 200) else answer.code
    return Unsent(run_id, now_ms, code, outcome, message, owner)
