"""Finds out what became of open runs (`behaviour.md`, Unconfirmed runs, Lost, Kill).

How long ago something was heard is reckoned by the database's clock: a host's clock that is set must not lose runs.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from jobwheel.admin.domain.ids import JobId, RunId
from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.run import Outcome, PendingRun, Phase
from jobwheel.admin.domain.writes import Accepted, TakeBack, TakeOff, Unconfirmed, Unsent
from jobwheel.admin.engine.addresses import AddressBook
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.dispatcher import refused
from jobwheel.admin.engine.executor_answers import Answer, AnswerKind
from jobwheel.admin.engine.executor_client import ExecutorClient
from jobwheel.admin.engine.inquiries import Inquiries
from jobwheel.admin.engine.kill_orders import KillOrders
from jobwheel.admin.engine.parents import NO_RUN, load_parents
from jobwheel.admin.engine.requests import trigger_request
from jobwheel.admin.engine.rules import (
    IDLE_ANSWERS,
    RESEND_AFTER_MS,
    RESENDS_END_MS,
    SILENT_MS,
    UNHEARD_END_MS,
    first_check_ms,
    first_look_ms,
    is_sent_again,
    next_check_ms,
    next_kill_ms,
    next_look_ms,
)
from jobwheel.admin.engine.run_log_writer import RunLogWriter
from jobwheel.admin.engine.take_backs import TakeBacks
from jobwheel.admin.store import checks, run_log, runs
from jobwheel.admin.store.checks import CheckLater, OpenRun
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.messages import JobQuery, Parent, Reason

log = get_logger(__name__)

_STALE_MARGIN_MS = 30_000
_MOST = 500
# How executors of other makes refuse a run that they have already; some spell it wrong.
_HAS_IT = re.compile(r"repeate? trigger", re.IGNORECASE)


class Recovery:
    """Looks at open runs whose time has come, and at this node's own runs that got stuck in sending."""

    def __init__(
        self,
        context: EngineContext,
        book: AddressBook,
        client: ExecutorClient,
        writer: RunLogWriter,
        take_backs: TakeBacks,
        is_in_flight: Callable[[RunId], bool],
    ) -> None:
        self._context = context
        self._book = book
        self._client = client
        self._writer = writer
        self._take_backs = take_backs
        self._is_in_flight = is_in_flight
        self._kill_orders = KillOrders(context, book, client, writer)
        self._inquiries = Inquiries(context, book, client, writer)

    async def run_once(self) -> int:
        """Look at what is due; return how many runs were looked at."""
        await self._free_stuck()
        database = self._context.database
        now_ms = database.now_ms()
        due = await database.read(checks.due_checks, now_ms, _MOST)
        if not due:
            return 0
        # Of unconfirmed runs the job says whether they are sent again.
        unconfirmed = {run.job_id for run in due if run.phase is Phase.UNCONFIRMED}
        jobs = await database.read(runs.load_dispatch_jobs, self._context.zone, unconfirmed) if unconfirmed else {}
        moves = [_move(run, jobs.get(run.job_id), now_ms) for run in due]
        taken = await database.write(checks.check_later, moves)
        mine = [run for run in due if run.id in taken]
        left = [run for run in mine if run.kill_ms is None]
        await asyncio.gather(
            self._kill_orders.carry_out([run for run in mine if run.kill_ms is not None], now_ms),
            self._inquiries.look([run for run in left if run.phase is Phase.ACCEPTED], now_ms),
            self._confirm([run for run in left if run.phase is Phase.UNCONFIRMED], jobs, now_ms),
        )
        return len(mine)

    async def _confirm(self, unconfirmed: Sequence[OpenRun], jobs: Mapping[JobId, DispatchJob], now_ms: int) -> None:
        if not unconfirmed:
            return
        ours = (run.parent_run_id for run in unconfirmed if run.instance_id is not None)
        parents = await load_parents(self._context.database, ours)
        await asyncio.gather(*(self._look(run, jobs.get(run.job_id), parents, now_ms) for run in unconfirmed))

    async def _free_stuck(self) -> None:
        """A run that the database has as being sent by this node, and that nobody here is sending.

        One without an address was sent nowhere: it has its turn again. What waits to be written, as long as the
        database takes nothing, says itself what became of its run; an end would end the run once it is under way.
        """
        context = self._context
        now_ms = context.clock.now()
        before_ms = now_ms - int(context.limits.send_timeout_s * 1000) - _STALE_MARGIN_MS
        node_id = context.node.id
        sending = await context.database.read(run_log.sending_since, node_id, before_ms, _MOST)
        stuck = [run for run in sending if not self._is_in_flight(run.id) and not self._writer.holds(run.id)]
        for run in stuck:
            log.warning("recovery.stuck_in_sending", run_id=run.id)
            if run.address:
                since_ms = context.database.now_ms()
                self._writer.add(Unconfirmed(run.id, since_ms, since_ms, context.messages.broken_off()))
        self._take_backs.add(TakeBack(run.id, node_id, run.sent_ms) for run in stuck if not run.address)

    async def _look(self, run: OpenRun, job: DispatchJob | None, parents: Mapping[RunId, Parent], now_ms: int) -> None:
        waited_ms = now_ms - (run.unheard_ms or run.check_ms)
        # While no node was there, nobody asked: the silence of that time says nothing.
        may_judge = self._context.node.unbroken_s * 1000 >= SILENT_MS
        silent_ms = waited_ms if may_judge else 0
        if job is not None and is_sent_again(run.instance_id, job):
            if silent_ms >= RESENDS_END_MS:
                self._lose(run, self._context.messages.no_answer())
            elif run.instance_id is not None:
                await self._resend(run, job, run.instance_id, parents.get(run.parent_run_id or NO_RUN))
            elif waited_ms >= RESEND_AFTER_MS[0]:
                await self._send_to_others_again(run, job)
        elif silent_ms >= UNHEARD_END_MS:
            self._lose(run, self._context.messages.not_readable())
        else:
            await self._ask(run)

    async def _resend(self, run: OpenRun, job: DispatchJob, instance_id: str, parent: Parent | None) -> None:
        request = msgspec.structs.replace(
            trigger_request(_as_pending(run), job, instance_id, parent),
            executor_handler=run.handler,
            resend=True,
            instance=instance_id,
        )
        answer = await self._client.run(run.address, self._book.app_name(run.group_id) or "", request)
        message = self._context.messages.sent_again(run.address, answer)
        refuses = answer.kind in (AnswerKind.REJECTED, AnswerKind.STOPPING)
        if refuses and (answer.reason == Reason.INSTANCE or answer.instance_id != instance_id):
            self._lose(run, message + self._context.messages.replaced())
        elif answer.kind is AnswerKind.STOPPING:
            await self._send_elsewhere(run, job, message, parent)
        else:
            self._record(run, answer, message)

    async def _send_to_others_again(self, run: OpenRun, job: DispatchJob) -> None:
        """To an executor of another make, because the job says so: it may run twice."""
        request = msgspec.structs.replace(trigger_request(_as_pending(run), job, None), executor_handler=run.handler)
        answer = await self._client.run(run.address, self._book.app_name(run.group_id) or "", request)
        message = self._context.messages.sent_again(run.address, answer)
        if answer.kind is AnswerKind.REJECTED and _HAS_IT.search(answer.message or ""):
            self._accept(run, None, message)
        elif not answer.discarded:
            # What blocks it may be itself, from the first time.
            self._record(run, answer, message)

    async def _send_elsewhere(self, run: OpenRun, job: DispatchJob, message: str, parent: Parent | None) -> None:
        """The process that it was sent to never had it and takes no more: as at first, it is the next one's turn."""
        database, before = self._context.database, run.address
        self._book.mark_unreachable(before)
        for candidate in [] if run.is_named else self._book.candidates(run.group_id):
            since_ms = database.now_ms()
            check_ms = first_check_ms(since_ms, resent=is_sent_again(candidate.instance_id, job))
            there = TakeOff(run.id, candidate.address, run.handler, job.route_strategy, candidate.instance_id)
            if not await database.write(checks.move_unconfirmed, there, before, since_ms, check_ms):
                return
            before = candidate.address
            request = trigger_request(_as_pending(run), job, candidate.instance_id, parent)
            request = msgspec.structs.replace(request, executor_handler=run.handler)
            answer = await self._client.run(before, self._book.app_name(run.group_id) or "", request)
            message += self._context.messages.asked(before, answer)
            if answer.kind not in (AnswerKind.UNREACHABLE, AnswerKind.STOPPING):
                self._record(run, answer, message)
                return
            self._book.mark_unreachable(before)
        message += self._context.messages.none_reached()
        self._writer.add(Unsent(run.id, self._context.clock.now(), 500, Outcome.FAILED, message))

    def _record(self, run: OpenRun, answer: Answer, message: str) -> None:
        """Write what the answer means; without a usable one the run stays as it is."""
        if answer.kind is AnswerKind.ACCEPTED:
            self._accept(run, answer.instance_id, message)
        elif answer.kind is AnswerKind.REJECTED:
            self._writer.add(refused(run.id, self._context.clock.now(), answer, message))

    def _accept(self, run: OpenRun, instance_id: str | None, message: str) -> None:
        now_ms, heard_ms = self._context.clock.now(), self._context.database.now_ms()
        self._writer.add(Accepted(run.id, now_ms, instance_id, message, heard_ms, first_look_ms(heard_ms)))

    async def _ask(self, run: OpenRun) -> None:
        """Another make of executor: it is never sent the run again, only asked whether the job is idle there."""
        idle = await self._client.is_idle(run.address, self._book.app_name(run.group_id) or "", JobQuery(run.job_id))
        if idle is None:
            return
        idle_answers = run.idle_answers + 1 if idle else 0
        if idle_answers >= IDLE_ANSWERS:
            self._lose(run, self._context.messages.called_idle(run.address, IDLE_ANSWERS))
            return
        database = self._context.database
        await database.write(checks.note_heard, [run.id], database.now_ms(), idle_answers)

    def _lose(self, run: OpenRun, message: str) -> None:
        self._writer.add(Unsent(run.id, self._context.clock.now(), 500, Outcome.LOST, message))


def _move(run: OpenRun, job: DispatchJob | None, now_ms: int) -> CheckLater:
    unheard_ms = run.check_ms if run.unheard_ms is None else run.unheard_ms
    if run.kill_ms is not None:
        later_ms = next_kill_ms(run.kill_ms, now_ms)
    elif run.phase is Phase.ACCEPTED:
        later_ms = next_look_ms(unheard_ms, run.idle_answers, now_ms, ours=run.instance_id is not None)
    else:
        resent = job is not None and is_sent_again(run.instance_id, job)
        later_ms = next_check_ms(unheard_ms, now_ms, resent=resent)
    return CheckLater(run.id, run.check_ms, later_ms)


def _as_pending(run: OpenRun) -> PendingRun:
    return PendingRun(
        id=run.id,
        job_id=run.job_id,
        group_id=run.group_id,
        trigger_type=run.trigger_type,
        planned_ms=run.planned_ms,
        due_ms=run.planned_ms,
        triggered_ms=run.triggered_ms,
        parameter=run.parameter,
        named_addresses=(),
        attempt=run.attempt,
        shard=run.shard,
        parent_run_id=run.parent_run_id,
    )
