"""Carries kills out that were asked for: executors are told until they answer, and results are waited for so long."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.run import Phase
from jobwheel.admin.domain.writes import Cancelled, Unanswered
from jobwheel.admin.engine.addresses import AddressBook
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.executor_answers import AnswerKind
from jobwheel.admin.engine.executor_client import ExecutorClient
from jobwheel.admin.engine.rules import KILL_END_MS, next_kill_ms
from jobwheel.admin.engine.run_log_writer import RunLogWriter
from jobwheel.admin.store import checks
from jobwheel.admin.store.checks import OpenRun
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.messages import KillRequest

log = get_logger(__name__)

_AT_ONCE = 32


class KillOrders:
    """Looks at open runs that a kill was asked for."""

    def __init__(self, context: EngineContext, book: AddressBook, client: ExecutorClient, writer: RunLogWriter) -> None:
        self._context = context
        self._book = book
        self._client = client
        self._writer = writer
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def carry_out(self, runs: Sequence[OpenRun], now_ms: int) -> None:
        """Look at these, which are this node's to look at now."""
        messages, ended_ms = self._context.messages, self._context.clock.now()
        alone: list[OpenRun] = []
        by_job = defaultdict[tuple[JobId, str], list[OpenRun]](list)
        for run in runs:
            assert run.kill_ms is not None, "a kill was asked for"
            if run.phase is Phase.PENDING:
                self._writer.add(Cancelled(run.id, ended_ms, messages.killed_unsent()))
            elif now_ms >= run.kill_ms + KILL_END_MS:
                log.warning("kill_orders.no_result", run_id=run.id, address=run.address)
                self._writer.add(Unanswered(run.id, ended_ms, messages.killed_silent(run.address)))
            elif run.instance_id is not None:
                alone.append(run)
            else:
                by_job[run.job_id, run.address].append(run)
        await asyncio.gather(*(self._tell([run]) for run in alone), *(self._tell(each) for each in by_job.values()))

    async def _tell(self, runs: Sequence[OpenRun]) -> None:
        """Tell an executor to end a run, or, one of another make, all runs of their job."""
        first = runs[0]
        request = KillRequest(first.job_id, msgspec.UNSET if first.instance_id is None else first.id)
        async with self._at_once:
            answer = await self._client.kill(first.address, self._book.app_name(first.group_id) or "", request)
        if answer.kind in (AnswerKind.UNREACHABLE, AnswerKind.UNCONFIRMED):
            log.info("kill_orders.not_told", run_id=first.id, address=first.address, error=answer.message)
            return
        message = self._context.messages.kill_told(first.address, answer)
        database = self._context.database
        for run in runs:
            assert run.kill_ms is not None, "a kill was asked for"
            end_ms = run.kill_ms + KILL_END_MS
            # Who refused may do it the next time.
            check_ms = end_ms if answer.kind is AnswerKind.ACCEPTED else next_kill_ms(run.kill_ms, database.now_ms())
            await database.write(checks.note_kill_told, run.id, message, check_ms)
