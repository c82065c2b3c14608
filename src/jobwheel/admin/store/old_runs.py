"""Runs that are kept no longer: found by index, a slice at a time, and removed if they are done."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, delete, not_, or_, select

from jobwheel.admin.domain.ids import JobId, RunId
from jobwheel.admin.store.chains import broadcasts_going_on
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.run_counts import RUNNING
from jobwheel.admin.store.sqlite_commits import note_removed
from jobwheel.admin.store.tables import event, job_info, job_log, session

DONE = and_(job_log.c.phase.is_(None), not_(RUNNING))
"""A run that nobody waits for: without a phase, and by its codes not open to a Java admin."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A slice of the run log: those of its runs that may go, where the next slice begins, whether it was the last."""

    run_ids: Sequence[RunId]
    last: tuple[datetime, int] | None
    is_last: bool


def own_retentions(connection: Connection) -> dict[JobId, int]:
    """The jobs that keep their runs for a time of their own, and for how many days (0 = for ever)."""
    query = select(job_info.c.id, job_info.c.retention_days).where(job_info.c.retention_days.is_not(None))
    return {JobId(row.id): row.retention_days for row in connection.execute(query)}


def old_runs(
    connection: Connection,
    before: datetime,
    after: tuple[datetime, int] | None,
    without: frozenset[JobId],
    most: int,
) -> Stretch:
    """The next slice of the runs triggered before a wall time, the oldest first, after the one that `after` names.

    Of the jobs in `without` none may go.
    """
    query = select(job_log.c.id, job_log.c.job_id, job_log.c.trigger_time, DONE.label("done"))
    query = query.where(job_log.c.trigger_time < before)
    if after is not None:
        later = or_(job_log.c.trigger_time > after[0], job_log.c.id > after[1])
        query = query.where(job_log.c.trigger_time >= after[0], later)
    query = query.order_by(job_log.c.trigger_time, job_log.c.id).limit(most)
    rows = connection.execute(statements(connection).by_index(query, job_log, "i_trigger_time")).all()
    ids = [RunId(row.id) for row in rows if row.done and JobId(row.job_id) not in without]
    return Stretch(ids, (rows[-1].trigger_time, rows[-1].id) if rows else None, len(rows) < most)


def old_runs_of_job(connection: Connection, job_id: JobId, before: datetime, after_id: int, most: int) -> Stretch:
    """The next slice of a job's runs by id, after a run; the last one is the one in which none is old enough."""
    query = (
        select(job_log.c.id, job_log.c.trigger_time, DONE.label("done"))
        .where(job_log.c.job_id == job_id, job_log.c.id > after_id)
        .order_by(job_log.c.id)
        .limit(most)
    )
    rows = connection.execute(statements(connection).by_index(query, job_log, "i_job_id")).all()
    old = [row for row in rows if row.trigger_time is not None and row.trigger_time < before]
    last = (before, rows[-1].id) if rows else None
    return Stretch([RunId(row.id) for row in old if row.done], last, len(rows) < most or not old)


def delete_done(connection: Connection, run_ids: Sequence[RunId]) -> int:
    """Remove those of these runs that are done; says how many.

    Shards stay as long as one of their broadcast is open, or is to be tried again: whether all have succeeded, and
    children start, is seen from their rows.
    """
    if not run_ids:
        return 0
    # In the order of their ids: see the lock order of `storage.md`.
    done = delete(job_log).where(job_log.c.id.in_(sorted(run_ids)), DONE)
    going_on = broadcasts_going_on(connection, run_ids)
    if going_on:
        done = done.where(or_(job_log.c.broadcast_id.is_(None), job_log.c.broadcast_id.not_in(going_on)))
    removed = connection.execute(done).rowcount
    note_removed(connection, removed)
    return removed


def delete_events(connection: Connection, before_ms: int, most: int) -> int:
    """Remove some of the events from before a moment, the oldest first; says how many."""
    chosen = select(event.c.id).where(event.c.at_ms < before_ms).order_by(event.c.at_ms).limit(most)
    ids = sorted(connection.execute(chosen).scalars())
    if ids:
        connection.execute(delete(event).where(event.c.id.in_(ids)))
    return len(ids)


def delete_sessions(connection: Connection, before_ms: int, most: int) -> int:
    """Remove some of the sessions that were over before a moment; says how many."""
    chosen = select(session.c.token_hash).where(session.c.expires_ms < before_ms).limit(most)
    hashes = sorted(connection.execute(chosen).scalars())
    if hashes:
        connection.execute(delete(session).where(session.c.token_hash.in_(hashes)))
    return len(hashes)
