"""Finds out what became of runs that may or may not have arrived (`behaviour.md`, Unconfirmed runs).

How long ago something was heard is reckoned by the database's clock: a host's clock that is set must not lose runs.
"""

import asyncio
from collections.abc import Callable

import msgspec

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.run import Outcome, PendingRun
from jobwheel.admin.domain.writes import Accepted, TakeBack, TakeOff, Unconfirmed, Unsent
from jobwheel.admin.engine.addresses import AddressBook
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.dispatcher import refused
from jobwheel.admin.engine.executor_client import Answer, AnswerKind, ExecutorClient
from jobwheel.admin.engine.requests import trigger_request
from jobwheel.admin.engine.rules import RESENDS_END_MS, UNHEARD_END_MS, first_check_ms, next_check_ms
from jobwheel.admin.engine.run_log_writer import RunLogWriter
from jobwheel.admin.engine.take_backs import TakeBacks
from jobwheel.admin.store import run_log, runs
from jobwheel.admin.store.run_log import CheckLater, UnconfirmedRun
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.messages import JobQuery, Reason

log = get_logger(__name__)

_IDLE_ANSWERS = 3
_STALE_MARGIN_MS = 30_000
_MOST = 200


class Recovery:
    """Looks at unconfirmed runs whose time has come, and at this node's own runs that got stuck in sending."""

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

    async def run_once(self) -> int:
        """Look at what is due; return how many runs were looked at."""
        await self._free_stuck()
        database = self._context.database
        now_ms = database.now_ms()
        due = await database.read(run_log.due_unconfirmed, now_ms, _MOST)
        if not due:
            return 0
        moves = [_move(run, now_ms) for run in due]
        taken = await database.write(run_log.check_later, moves)
        mine = [run for run in due if run.id in taken]
        jobs = await database.read(runs.load_dispatch_jobs, self._context.zone, {run.job_id for run in mine})
        await asyncio.gather(*(self._look(run, jobs.get(run.job_id), now_ms) for run in mine))
        return len(mine)

    async def _free_stuck(self) -> None:
        """A run that the database has as being sent by this node, and that nobody here is sending.

        One without an address was sent nowhere: it has its turn again.
        """
        context = self._context
        now_ms = context.clock.now()
        before_ms = now_ms - int(context.limits.send_timeout_s * 1000) - _STALE_MARGIN_MS
        node_id = context.node.id
        sending = await context.database.read(run_log.sending_since, node_id, before_ms, _MOST)
        stuck = [run for run in sending if not self._is_in_flight(run.id)]
        for run in stuck:
            log.warning("recovery.stuck_in_sending", run_id=run.id)
            if run.address:
                since_ms = context.database.now_ms()
                self._writer.add(Unconfirmed(run.id, since_ms, since_ms, context.messages.broken_off()))
        self._take_backs.add(TakeBack(run.id, node_id, run.sent_ms) for run in stuck if not run.address)

    async def _look(self, run: UnconfirmedRun, job: DispatchJob | None, now_ms: int) -> None:
        silent_ms = now_ms - run.unheard_ms
        if run.instance_id is not None and job is not None:
            if silent_ms >= RESENDS_END_MS:
                self._lose(run, self._context.messages.no_answer())
            else:
                await self._resend(run, job, run.instance_id)
        elif silent_ms >= UNHEARD_END_MS:
            self._lose(run, self._context.messages.not_readable())
        else:
            await self._ask(run)

    async def _resend(self, run: UnconfirmedRun, job: DispatchJob, instance_id: str) -> None:
        request = msgspec.structs.replace(
            trigger_request(_as_pending(run), job, instance_id),
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
            await self._send_elsewhere(run, job, message)
        else:
            self._record(run, answer, message)

    async def _send_elsewhere(self, run: UnconfirmedRun, job: DispatchJob, message: str) -> None:
        """The process that it was sent to never had it and takes no more: as at first, it is the next one's turn."""
        database, before = self._context.database, run.address
        self._book.mark_unreachable(before)
        for candidate in [] if run.is_named else self._book.candidates(run.group_id):
            since_ms = database.now_ms()
            check_ms = first_check_ms(since_ms, ours=candidate.instance_id is not None)
            there = TakeOff(run.id, candidate.address, run.handler, job.route_strategy, candidate.instance_id)
            if not await database.write(run_log.move_unconfirmed, there, before, since_ms, check_ms):
                return
            before = candidate.address
            request = trigger_request(_as_pending(run), job, candidate.instance_id)
            request = msgspec.structs.replace(request, executor_handler=run.handler)
            answer = await self._client.run(before, self._book.app_name(run.group_id) or "", request)
            message += self._context.messages.asked(before, answer)
            if answer.kind not in (AnswerKind.UNREACHABLE, AnswerKind.STOPPING):
                self._record(run, answer, message)
                return
            self._book.mark_unreachable(before)
        message += self._context.messages.none_reached()
        self._writer.add(Unsent(run.id, self._context.clock.now(), 500, Outcome.FAILED, message))

    def _record(self, run: UnconfirmedRun, answer: Answer, message: str) -> None:
        """Write what the answer means; without a usable one the run stays as it is."""
        now_ms = self._context.clock.now()
        if answer.kind is AnswerKind.ACCEPTED:
            self._writer.add(Accepted(run.id, now_ms, answer.instance_id, message))
        elif answer.kind is AnswerKind.REJECTED:
            self._writer.add(refused(run.id, now_ms, answer, message))

    async def _ask(self, run: UnconfirmedRun) -> None:
        """Another make of executor: it is never sent the run again, only asked whether the job is idle there."""
        idle = await self._client.is_idle(run.address, self._book.app_name(run.group_id) or "", JobQuery(run.job_id))
        if idle is None:
            return
        idle_answers = run.idle_answers + 1 if idle else 0
        if idle_answers >= _IDLE_ANSWERS:
            self._lose(run, self._context.messages.called_idle(run.address, _IDLE_ANSWERS))
            return
        database = self._context.database
        await database.write(run_log.note_heard, run.id, database.now_ms(), idle_answers)

    def _lose(self, run: UnconfirmedRun, message: str) -> None:
        self._writer.add(Unsent(run.id, self._context.clock.now(), 500, Outcome.LOST, message))


def _move(run: UnconfirmedRun, now_ms: int) -> CheckLater:
    later_ms = next_check_ms(run.unheard_ms, now_ms, ours=run.instance_id is not None)
    return CheckLater(run.id, run.check_ms, later_ms)


def _as_pending(run: UnconfirmedRun) -> PendingRun:
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
    )
