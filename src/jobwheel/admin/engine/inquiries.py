"""Asks about accepted runs of which there is no result, and gives up those that are lost.

A result that comes later finds its run all the same.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence

from jobwheel.admin.domain.group import Registration, normal_address
from jobwheel.admin.domain.ids import GroupId, RunId
from jobwheel.admin.domain.writes import Unanswered
from jobwheel.admin.engine.addresses import AddressBook
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.executor_client import ExecutorClient
from jobwheel.admin.engine.lost_rules import Verdict, Whereabouts, judge_other, judge_ours
from jobwheel.admin.engine.rules import SILENT_MS, is_asked_about
from jobwheel.admin.engine.run_log_writer import RunLogWriter
from jobwheel.admin.store import checks
from jobwheel.admin.store.checks import OpenRun
from jobwheel.admin.store.groups import list_registrations
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.messages import JobQuery

log = get_logger(__name__)

_There = Mapping[tuple[str, str], Registration]
"""Who beat lately, by app name and normal address."""


class Inquiries:
    """Looks at accepted runs whose time has come. How long a run is silent is reckoned by the database's clock."""

    def __init__(self, context: EngineContext, book: AddressBook, client: ExecutorClient, writer: RunLogWriter) -> None:
        self._context = context
        self._book = book
        self._client = client
        self._writer = writer

    async def look(self, runs: Sequence[OpenRun], now_ms: int) -> None:
        """Look at these, which are this node's to look at now."""
        if not runs:
            return
        app_names = {self._app_name(run.group_id) for run in runs}
        beats = await self._context.database.read(list_registrations, app_names, now_ms - SILENT_MS)
        there: dict[tuple[str, str], Registration] = {}
        for each in sorted(beats, key=lambda each: each.beat_ms):
            there[each.app_name, normal_address(each.address)] = each
        at = defaultdict[tuple[GroupId, str], list[OpenRun]](list)
        others = []
        for run in runs:
            if run.instance_id is not None:
                at[run.group_id, run.address].append(run)
            elif is_asked_about(_since_ms(run), run.idle_answers, now_ms):
                others.append(run)
        await asyncio.gather(
            *(self._ask_ours(theirs, there, now_ms) for theirs in at.values()),
            *(self._ask_other(run, there, now_ms) for run in others),
        )

    async def _ask_ours(self, runs: Sequence[OpenRun], there: _There, now_ms: int) -> None:
        address, app_name = runs[0].address, self._app_name(runs[0].group_id)
        answer = await self._client.statuses(address, app_name, [run.id for run in runs])
        verdicts = {run.id: judge_ours(run, answer, self._whereabouts(run, there, now_ms)) for run in runs}
        heard = [run_id for run_id, verdict in verdicts.items() if verdict is Verdict.HEARD]
        if heard:
            await self._note_heard(heard, 0)
        for run in runs:
            self._give_up(run, verdicts[run.id], now_ms)

    async def _ask_other(self, run: OpenRun, there: _There, now_ms: int) -> None:
        idle = await self._client.is_idle(run.address, self._app_name(run.group_id), JobQuery(run.job_id))
        verdict = judge_other(run, idle, self._whereabouts(run, there, now_ms))
        if verdict is Verdict.HEARD:
            await self._note_heard([run.id], run.idle_answers + 1 if idle else 0)
        self._give_up(run, verdict, now_ms)

    def _whereabouts(self, run: OpenRun, there: _There, now_ms: int) -> Whereabouts:
        return Whereabouts(
            now_ms - _since_ms(run),
            self._book.is_fixed(run.group_id),
            there.get((self._app_name(run.group_id), normal_address(run.address))),
            # Asked after the question: this process may have been frozen meanwhile.
            self._context.node.unbroken_s * 1000 >= SILENT_MS,
        )

    async def _note_heard(self, run_ids: Sequence[RunId], idle_answers: int) -> None:
        database = self._context.database
        await database.write(checks.note_heard, run_ids, database.now_ms(), idle_answers)

    def _give_up(self, run: OpenRun, verdict: Verdict, now_ms: int) -> None:
        if verdict in (Verdict.HEARD, Verdict.WAITS):
            return
        message = self._message(run, verdict, now_ms - _since_ms(run))
        log.warning("inquiries.lost", run_id=run.id, address=run.address, why=verdict.name.lower())
        self._writer.add(Unanswered(run.id, self._context.clock.now(), message))

    def _message(self, run: OpenRun, verdict: Verdict, silent_ms: int) -> str:
        messages = self._context.messages
        if verdict is Verdict.UNKNOWN:
            return messages.lost_unknown(run.address)
        if verdict is Verdict.REPLACED:
            return messages.lost_replaced(run.address)
        if verdict is Verdict.IDLE:
            return messages.lost_idle(run.address)
        return messages.lost_gone(run.address, silent_ms)

    def _app_name(self, group_id: GroupId) -> str:
        return self._book.app_name(group_id) or ""


def _since_ms(run: OpenRun) -> int:
    """Since when nothing was heard of it."""
    return run.check_ms if run.unheard_ms is None else run.unheard_ms
