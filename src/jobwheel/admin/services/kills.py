"""Ending runs before they end by themselves, because somebody says so."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.group import LIVE_FOR_MS, normal_address
from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.run import Phase, Run
from jobwheel.admin.engine.trigger_message import TriggerMessages
from jobwheel.admin.services.errors import KillsWholeJobError, NotFoundError, RunEndedError
from jobwheel.admin.services.scheduler import Scheduler
from jobwheel.admin.services.scoped import Scoped
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import insert_event
from jobwheel.admin.store.groups import get_group, list_registrations
from jobwheel.admin.store.jobs import get_job
from jobwheel.admin.store.kills import Holder, ask_kill, holder_of, holders, last_open_run, open_to_kill
from jobwheel.admin.store.run_list import get_run, hold_runs
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock

_SLICE: Final = 1000
_MOST_LISTED: Final = 100


class Kills(Scoped):
    """Has runs killed. What is written is the wish; it is carried out by the engine, of whichever node."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        zone: InstallationZone,
        scheduler: Scheduler,
        messages: TriggerMessages,
    ) -> None:
        self._database = database
        self._clock = clock
        self._zone = zone
        self._scheduler = scheduler
        self._messages = messages

    async def kill_run(self, run_id: RunId, *, by_job: bool, actor: str) -> Run:
        """Have a run killed, and return it: killed if nothing of it was sent; else its executor is being told.

        Args:
            run_id: the run; of a broadcast that shard alone.
            by_job: an executor that cannot end one run alone may end all of the job that are there.
            actor: who wants it.

        Raises:
            NotFoundError: there is no such run.
            RunEndedError: it has ended, or another admin runs it.
            KillsWholeJobError: its executor can only end all runs of the job, which `by_job` does not allow.
        """
        pending = await self._database.write(self._ask, run_id, by_job, actor)
        await self._scheduler.carry_out_kills(pending)
        run = await self._database.read(get_run, run_id)
        if run is None:
            raise NotFoundError("run", run_id)
        return run

    async def kill_job_runs(self, job_id: JobId, *, by_job: bool, actor: str) -> int:
        """Have all runs of a job killed that are open at this moment; return how many no kill was asked for before.

        Raises:
            NotFoundError: there is no such job.
            KillsWholeJobError: as for `kill_run`; then nothing is killed.
        """
        until_id = await self._database.write(self._may_kill_all, job_id, by_job)
        count = 0
        while until_id is not None:
            asked, pending = await self._database.write(self._ask_some, job_id, until_id, by_job, actor)
            await self._scheduler.carry_out_kills(pending)
            count += asked
            if not asked:
                break
        return count

    def _ask(self, connection: Connection, run_id: RunId, by_job: bool, actor: str) -> list[RunId]:  # noqa: FBT001 - passed through `write`
        run = get_run(connection, run_id, lock=True)
        if run is None or self.hides(run.group_id):
            raise NotFoundError("run", run_id)
        if run.phase is None:
            raise RunEndedError(run_id, run.outcome)
        if not by_job:
            self._check(connection, run.job_id, [holder_of(run)])
        if run.kill_ms is None:
            self._record(connection, [run], by_job=by_job, actor=actor)
        return [run_id] if run.phase is Phase.PENDING else []

    def _may_kill_all(self, connection: Connection, job_id: JobId, by_job: bool) -> RunId | None:  # noqa: FBT001 - passed through `write`
        """The newest run that is open, if all of them may be killed."""
        job = get_job(connection, self._zone, job_id)
        if job is None or self.hides(job.settings.group_id):
            raise NotFoundError("job", job_id)
        until_id = last_open_run(connection, job_id)
        if until_id is not None and not by_job:
            self._check(connection, job_id, holders(connection, job_id))
        return until_id

    def _ask_some(
        self,
        connection: Connection,
        job_id: JobId,
        until_id: RunId,
        by_job: bool,  # noqa: FBT001 - passed through `write`
        actor: str,
    ) -> tuple[int, list[RunId]]:
        found = hold_runs(connection, open_to_kill(connection, job_id, until_id, _SLICE))
        runs = [run for run in found if run.phase is not None and run.kill_ms is None]
        if not by_job:
            # One that was sent a moment ago.
            self._check(connection, job_id, {holder_of(run) for run in runs})
        if runs:
            self._record(connection, runs, by_job=by_job, actor=actor)
        return len(runs), [run.id for run in runs if run.phase is Phase.PENDING]

    def _check(self, connection: Connection, job_id: JobId, having: Iterable[Holder | None]) -> None:
        sent = [holder for holder in having if holder is not None]
        cannot = self._unable(connection, {each.group_id for each in sent if each.instance_id is not None})
        for each in sent:
            if each.instance_id is None or (each.instance_id, normal_address(each.address)) in cannot:
                raise KillsWholeJobError(job_id, each.address)

    def _unable(self, connection: Connection, group_ids: Collection[GroupId]) -> set[tuple[str, str]]:
        """The processes of ours, by id and address, that say they cannot end one run alone."""
        groups = [get_group(connection, self._zone, group_id) for group_id in sorted(group_ids)]
        app_names = {group.app_name for group in groups if group is not None}
        since_ms = self._database.now_ms() - LIVE_FOR_MS
        beats = list_registrations(connection, app_names, since_ms) if app_names else []
        return {
            (each.instance_id, normal_address(each.address))
            for each in beats
            if each.instance_id is not None and not each.kills_by_run
        }

    def _record(self, connection: Connection, runs: Sequence[Run], *, by_job: bool, actor: str) -> None:
        ask_kill(connection, [run.id for run in runs], self._database.now_ms(), self._messages.kill_asked(actor))
        first = runs[0]
        details: dict[str, object] = {
            "by_job": by_job,
            "count": len(runs),
            "runs": [
                {"id": run.id, "phase": run.phase, "address": run.executor_address} for run in runs[:_MOST_LISTED]
            ],
        }
        run_id = first.id if len(runs) == 1 else None
        new = NewEvent(
            EventKind.RUN_KILL_ASKED, self._clock.now(), actor, first.group_id, first.job_id, run_id, details
        )
        insert_event(connection, new)
