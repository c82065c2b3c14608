"""Running what has run already once more, as it was meant."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.ids import JobId, RunId
from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import NewRun, Outcome, PendingRun, TriggerType, triggered_ms
from jobwheel.admin.services.errors import InvalidFieldError, NotFoundError, OpenRunsError
from jobwheel.admin.services.scheduler import Scheduler
from jobwheel.admin.services.scoped import Scoped
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import insert_events
from jobwheel.admin.store.job_keys import hold_jobs
from jobwheel.admin.store.jobs import get_job, set_next_time
from jobwheel.admin.store.run_chains import ChainRun, later_attempts, load_chain_runs
from jobwheel.admin.store.run_list import RunFilter, list_runs
from jobwheel.admin.store.runs import insert_runs
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock
from jobwheel.schedule import ScheduleType

MOST_RUNS: Final = 1000
"""How many runs may be repeated at once."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """A run that is repeated, and the new one; None if it was only asked what would be done."""

    repeats: RunId
    job_id: JobId
    planned_ms: int | None
    run_id: RunId | None


class Reruns(Scoped):
    """The use case of repeating runs: with their parameters and planned times, as new chains of attempts.

    Of several attempts or shards of one planned time there is one repetition. A run belongs to the group that its job
    was of when it was made; to repeat it, the job must be of the same person's groups now, too.
    """

    def __init__(self, database: Database, clock: Clock, zone: InstallationZone, scheduler: Scheduler) -> None:
        self._database = database
        self._clock = clock
        self._zone = zone
        self._scheduler = scheduler

    async def rerun(
        self,
        selection: Sequence[RunId] | RunFilter,
        *,
        actor: str,
        trigger_type: TriggerType = TriggerType.MANUAL,
        dry_run: bool = False,
    ) -> Sequence[Rerun]:
        """Repeat the runs of these ids, or those that a filter finds but for planned times that succeeded later.

        Args:
            selection: which runs.
            actor: who wants it.
            trigger_type: that of the new runs.
            dry_run: whether it is only told what would be done.

        Raises:
            NotFoundError: there is no run of an id, or its job is gone.
            InvalidFieldError: there are too many.
            OpenRunsError: some have not ended, or will be tried again; names them.
        """
        if dry_run:
            chosen, _ = await self._database.read(self._choose, selection)
            return [Rerun(each.id, each.job_id, each.planned_ms, None) for each in chosen]
        reruns, pending = await self._database.write(self._rerun, selection, trigger_type, actor)
        self._scheduler.fly(pending)
        return reruns

    def _rerun(
        self, connection: Connection, selection: Sequence[RunId] | RunFilter, trigger_type: TriggerType, actor: str
    ) -> tuple[list[Rerun], list[PendingRun]]:
        chosen, _ = self._choose(connection, selection)
        # Held in order, then looked at again: a retry may have been made meanwhile.
        hold_jobs(connection, {each.job_id for each in chosen})
        chosen, jobs = self._choose(connection, selection)
        now_ms = self._clock.now()
        new = [self._new_run(jobs[each.job_id], each, trigger_type, now_ms) for each in chosen]
        pending = insert_runs(connection, self._zone, new)
        for job in jobs.values():
            if job.running and job.settings.schedule_type is ScheduleType.FIX_DELAY:
                # While any run of it is open, the next one waits for its end.
                set_next_time(connection, job.id, AWAITING_SETTLEMENT_MS)
        pairs = list(zip(chosen, pending, strict=True))
        insert_events(connection, [_event(old, run, actor, now_ms) for old, run in pairs])
        return [Rerun(old.id, old.job_id, old.planned_ms, run.id) for old, run in pairs], pending

    def _choose(
        self, connection: Connection, selection: Sequence[RunId] | RunFilter
    ) -> tuple[list[ChainRun], dict[JobId, Job]]:
        """One run of each chain, and the jobs; by a filter without the chains that have succeeded in the end."""
        ids = self._found(connection, selection) if isinstance(selection, RunFilter) else list(selection)
        if len(ids) > MOST_RUNS:
            raise InvalidFieldError("run_ids", f"these are more than {MOST_RUNS} runs; choose fewer at a time")
        runs = load_chain_runs(connection, ids)
        for run_id in ids:
            if run_id not in runs or self.hides(runs[run_id].group_id):
                raise NotFoundError("run", run_id)
        later = later_attempts(connection, runs.values())
        chains = {each.chain: each for each in sorted(runs.values(), key=lambda run: run.id)}
        attempts = [*runs.values(), *(each for each in later if each.chain in chains)]
        are_open = sorted({each.id for each in attempts if each.is_open})
        if are_open:
            raise OpenRunsError(are_open)
        done = _succeeded(attempts) if isinstance(selection, RunFilter) and _wants_failures(selection) else set()
        chosen = [each for chain, each in chains.items() if chain not in done]
        return chosen, self._jobs(connection, chosen)

    def _found(self, connection: Connection, wanted: RunFilter) -> list[RunId]:
        own = replace(wanted, group_ids=self.group_ids)
        return [run.id for run in list_runs(connection, own, None, MOST_RUNS + 1)]

    def _jobs(self, connection: Connection, chosen: Sequence[ChainRun]) -> dict[JobId, Job]:
        jobs: dict[JobId, Job] = {}
        for each in chosen:
            if each.job_id not in jobs:
                job = get_job(connection, self._zone, each.job_id)
                if job is None or self.hides(job.settings.group_id):
                    raise NotFoundError("job", f"{each.job_id} any more, which the run {each.id} was of")
                jobs[each.job_id] = job
        return jobs

    def _new_run(self, job: Job, old: ChainRun, trigger_type: TriggerType, now_ms: int) -> NewRun:
        planned_ms = now_ms if old.planned_ms is None else old.planned_ms
        return NewRun(
            job_id=job.id,
            group_id=job.settings.group_id,
            trigger_type=trigger_type,
            planned_ms=planned_ms,
            due_ms=now_ms,
            triggered_ms=triggered_ms(trigger_type, planned_ms, now_ms),
            parameter=old.parameter,
            owner=self._scheduler.node_id,
        )


def _wants_failures(wanted: RunFilter) -> bool:
    return wanted.outcome not in (None, Outcome.SUCCEEDED)


def _succeeded(attempts: Iterable[ChainRun]) -> set[RunId]:
    return {each.chain for each in attempts if each.succeeded}


def _event(old: ChainRun, run: PendingRun, actor: str, at_ms: int) -> NewEvent:
    details = {"trigger_type": run.trigger_type.value, "parameter": run.parameter, "repeats": old.id}
    return NewEvent(EventKind.RUN_TRIGGERED, at_ms, actor, run.group_id, run.job_id, run.id, details)
