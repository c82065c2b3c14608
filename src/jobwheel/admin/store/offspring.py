"""The children of runs that succeeded: each once, whatever is reported how often (`behaviour.md`, Children).

The jobs of the parents and of the children are held, so that of two runs that end at once the second finds what the
first has started.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, update

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.retries import EndedRun
from jobwheel.admin.domain.run import Lineage, NewRun, TriggerType, triggered_ms
from jobwheel.admin.store import chains
from jobwheel.admin.store.events import insert_events
from jobwheel.admin.store.held_jobs import HeldChild, HeldJobs
from jobwheel.admin.store.tables import job_info


@dataclass(frozen=True, slots=True)
class Child:
    """One of a job's children: the run of it that is to be written, or why there is none."""

    job_id: JobId
    run: NewRun | None
    refusal: EventKind | None = None


@dataclass(frozen=True, slots=True)
class Offspring:
    """What comes of a run that succeeded."""

    parent: EndedRun
    children: Sequence[Child]


def offspring_of(
    connection: Connection, node_id: NodeId, runs: Sequence[EndedRun], held: HeldJobs
) -> Sequence[Offspring]:
    """The children that these runs start; their FIX_DELAY jobs wait for them, and what cannot be is an event."""
    parents = _starting(connection, runs)
    if not parents:
        return ()
    forefathers = chains.forefathers(connection, parents)
    offspring = [
        Offspring(run, [_child(run, each, node_id, held, forefathers[run.id]) for each in held.children[run.job_id]])
        for run in parents
    ]
    _let_wait(connection, offspring, held)
    insert_events(connection, [_event(each.parent, child, held) for each in offspring for child in _refused(each)])
    return offspring


def _starting(connection: Connection, runs: Sequence[EndedRun]) -> list[EndedRun]:
    """One run of each chain, and one of each broadcast that is complete, if none of it has children yet."""
    broadcasts = {run.broadcast_id for run in runs if run.broadcast_id is not None}
    complete = chains.complete_broadcasts(connection, broadcasts)
    one_of_each: dict[RunId, EndedRun] = {}
    for run in runs:
        if run.broadcast_id is None or run.broadcast_id in complete:
            one_of_each.setdefault(run.broadcast_id or run.chain_id, run)
    chosen = list(one_of_each.values())
    with_children = chains.have_children(connection, chosen) if chosen else set()
    return [run for run in chosen if run.id not in with_children]


def _child(
    parent: EndedRun, job_id: JobId, node_id: NodeId, held: HeldJobs, forefathers: Collection[JobId] | None
) -> Child:
    job = held.child_jobs.get(job_id)
    if job is None:
        return Child(job_id, None, EventKind.RUN_CHILD_GONE)
    # A circle is refused when a job is saved; another make of admin may have made one.
    if forefathers is None or job_id in forefathers:
        return Child(job_id, None, EventKind.RUN_CHILD_REFUSED)
    return Child(job_id, _run_of(job, parent, node_id))


def _run_of(job: HeldChild, parent: EndedRun, node_id: NodeId) -> NewRun:
    now_ms = parent.ended_ms
    return NewRun(
        job_id=job.id,
        group_id=job.group_id,
        trigger_type=TriggerType.PARENT,
        planned_ms=now_ms,
        due_ms=now_ms,
        triggered_ms=triggered_ms(TriggerType.PARENT, now_ms, now_ms),
        parameter=job.parameter,
        owner=node_id,
        lineage=Lineage(parent_run_id=parent.id),
    )


def _let_wait(connection: Connection, offspring: Sequence[Offspring], held: HeldJobs) -> None:
    """While any run of a FIX_DELAY job is open, the next one waits for its end."""
    started = {child.job_id for each in offspring for child in each.children if child.run is not None}
    waiting = [job_id for job_id in sorted(started) if held.child_jobs[job_id].waits_for_end]
    if waiting:
        jobs = update(job_info).where(job_info.c.id.in_(waiting))
        connection.execute(jobs.values(trigger_next_time=AWAITING_SETTLEMENT_MS))
        held.awaiting.update(waiting)


def _refused(offspring: Offspring) -> list[Child]:
    return [child for child in offspring.children if child.run is None]


def _event(parent: EndedRun, child: Child, held: HeldJobs) -> NewEvent:
    assert child.refusal is not None, "a child without a run has a reason"
    group_id = held.child_jobs[parent.job_id].group_id
    return NewEvent(
        child.refusal,
        parent.ended_ms,
        group_id=group_id,
        job_id=parent.job_id,
        run_id=parent.id,
        details={"child_job_id": child.job_id},
    )
