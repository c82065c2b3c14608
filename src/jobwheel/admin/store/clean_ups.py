"""Clean-ups of the run log: what was asked for, how far it is, and the work itself, a slice at a time."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, insert, or_, select, true, update

from jobwheel.admin.domain.clean_up import OPEN_STATES, CleanUp, CleanUpState, CleanUpWhich
from jobwheel.admin.domain.ids import CleanUpId, GroupId, JobId, RunId
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.dialects.base import PRIMARY_KEY
from jobwheel.admin.store.old_runs import DONE, delete_done
from jobwheel.admin.store.tables import clean_up, job_log

# Runs are written nearly in the order of their times: of the newest ones before a time the highest id is among these.
_NEARLY: Final = 1000


@dataclass(frozen=True, slots=True)
class NewCleanUp:
    """What a person asks for; with `before`, a wall time, only runs triggered before it go."""

    which: CleanUpWhich
    group_id: GroupId | None
    job_id: JobId | None
    before: datetime | None
    actor: str
    created_ms: int


def insert_clean_up(connection: Connection, new: NewCleanUp) -> CleanUp:
    """Write a clean-up of the runs that there are now."""
    newest = connection.execute(select(func.max(job_log.c.id))).scalar() or 0
    values = {
        "state": CleanUpState.WAITING.value,
        "which": new.which.value,
        "job_group": new.group_id,
        "job_id": new.job_id,
        "before_time": new.before,
        "below_id": newest + 1,
        "actor": new.actor,
        "created_ms": new.created_ms,
        "updated_ms": new.created_ms,
    }
    inserted = connection.execute(insert(clean_up).values(values)).inserted_primary_key
    assert inserted is not None
    made = get_clean_up(connection, CleanUpId(inserted[0]))
    assert made is not None
    return made


def get_clean_up(connection: Connection, clean_up_id: CleanUpId) -> CleanUp | None:
    """A clean-up by its id."""
    row = connection.execute(select(clean_up).where(clean_up.c.id == clean_up_id)).first()
    return None if row is None else _clean_up(row)


def list_clean_ups(
    connection: Connection, before_id: int | None, limit: int, group_ids: Collection[GroupId] | None = None
) -> list[CleanUp]:
    """Clean-ups, newest first; those of these groups alone if they are given."""
    query = select(clean_up).order_by(clean_up.c.id.desc()).limit(limit)
    if before_id is not None:
        query = query.where(clean_up.c.id < before_id)
    if group_ids is not None:
        query = query.where(clean_up.c.job_group.in_(group_ids))
    return [_clean_up(row) for row in connection.execute(query)]


def next_clean_up(connection: Connection) -> CleanUp | None:
    """The oldest one that has not ended."""
    query = select(clean_up).where(clean_up.c.state.in_(OPEN_STATES)).order_by(clean_up.c.id).limit(1)
    row = connection.execute(query).first()
    return None if row is None else _clean_up(row)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Up to which run a clean-up goes (not included), and about how many runs it looks at."""

    below_id: int
    about: int


def find_bounds(connection: Connection, clean_up_id: CleanUpId) -> Bounds:
    """Find out what a clean-up comes to."""
    row = connection.execute(select(clean_up).where(clean_up.c.id == clean_up_id)).one()
    theirs = and_(_scope(row), job_log.c.id < row.below_id)
    below_id = _below(connection, row, theirs)
    if row.job_id is None and row.job_group is None:
        # Counting them would take as long as a part of the work.
        first = connection.execute(select(func.min(job_log.c.id))).scalar()
        return Bounds(below_id, 0 if first is None else max(0, below_id - first))
    count = _by_scope(connection, row, select(func.count()).select_from(job_log))
    return Bounds(below_id, connection.execute(count.where(_scope(row), job_log.c.id < below_id)).scalar_one())


def begin(connection: Connection, clean_up_id: CleanUpId, bounds: Bounds, now_ms: int) -> None:
    """Waiting → running."""
    connection.execute(
        update(clean_up)
        .where(clean_up.c.id == clean_up_id, clean_up.c.state == CleanUpState.WAITING)
        .values(state=CleanUpState.RUNNING.value, below_id=bounds.below_id, about=bounds.about, updated_ms=now_ms)
    )


@dataclass(frozen=True, slots=True)
class Part:
    """The next slice of a clean-up: runs that go, the last run that was looked at, and whether none comes after it."""

    after_id: int
    run_ids: Sequence[RunId]
    last_id: int
    is_last: bool


def next_part(connection: Connection, clean_up_id: CleanUpId, most: int) -> Part:
    """Look at the next runs of a clean-up."""
    row = connection.execute(select(clean_up).where(clean_up.c.id == clean_up_id)).one()
    query = select(job_log.c.id, and_(DONE, _is_old(row)).label("goes"))
    query = _by_scope(connection, row, query)
    query = query.where(_scope(row), job_log.c.id > row.after_id, job_log.c.id < row.below_id)
    runs = connection.execute(query.order_by(job_log.c.id).limit(most)).all()
    goes = [RunId(run.id) for run in runs if run.goes]
    return Part(row.after_id, goes, runs[-1].id if runs else row.after_id, len(runs) < most)


def clean(connection: Connection, clean_up_id: CleanUpId, part: Part, now_ms: int) -> bool:
    """Remove a slice and note it, in one; False if the clean-up was cancelled, or another node has been at it."""
    state = CleanUpState.DONE if part.is_last else CleanUpState.RUNNING
    still = and_(
        clean_up.c.id == clean_up_id,
        clean_up.c.state == CleanUpState.RUNNING,
        clean_up.c.after_id == part.after_id,
    )
    noted = connection.execute(
        update(clean_up)
        .where(still)
        .values(
            after_id=part.last_id,
            updated_ms=now_ms,
            state=state.value,
            ended_ms=now_ms if part.is_last else None,
        )
    )
    if noted.rowcount != 1:
        return False
    deleted = delete_done(connection, part.run_ids)
    counted = update(clean_up).where(clean_up.c.id == clean_up_id)
    connection.execute(counted.values(deleted=clean_up.c.deleted + deleted))
    return True


def cancel(connection: Connection, clean_up_id: CleanUpId, now_ms: int) -> bool:
    """End a clean-up before its time; False if it has ended."""
    cancelled = connection.execute(
        update(clean_up)
        .where(clean_up.c.id == clean_up_id, clean_up.c.state.in_(OPEN_STATES))
        .values(state=CleanUpState.CANCELLED.value, ended_ms=now_ms, updated_ms=now_ms)
    )
    return cancelled.rowcount == 1


def _below(connection: Connection, row: Row[Any], theirs: ColumnElement[bool]) -> int:
    which = CleanUpWhich(row.which)
    if which.kept:
        query = _by_scope(connection, row, select(job_log.c.id)).where(theirs)
        kept = query.order_by(job_log.c.id.desc()).offset(which.kept - 1).limit(1)
        return connection.execute(kept).scalar() or 0
    if row.before_time is None:
        return int(row.below_id)
    old = select(job_log.c.id).where(job_log.c.trigger_time < row.before_time)
    newest = old.order_by(job_log.c.trigger_time.desc()).limit(_NEARLY).subquery()
    last = connection.execute(select(func.max(newest.c.id))).scalar() or 0
    return min(last + 1, int(row.below_id))


def _scope(row: Row[Any]) -> ColumnElement[bool]:
    """The runs of the job or the group that a clean-up is about."""
    scope: ColumnElement[bool] = true()
    if row.job_id is not None:
        scope = and_(scope, job_log.c.job_id == row.job_id)
    if row.job_group is not None:
        scope = and_(scope, job_log.c.job_group == row.job_group)
    return scope


def _by_scope(connection: Connection, row: Row[Any], query: Select[Any]) -> Select[Any]:
    index = "i_job_id" if row.job_id is not None else "i_job_group" if row.job_group is not None else PRIMARY_KEY
    return statements(connection).by_index(query, job_log, index)


def _is_old(row: Row[Any]) -> ColumnElement[bool]:
    if row.before_time is None:
        return true()
    return or_(job_log.c.trigger_time < row.before_time, job_log.c.trigger_time.is_(None))


def _clean_up(row: Row[Any]) -> CleanUp:
    return CleanUp(
        id=CleanUpId(row.id),
        state=CleanUpState(row.state),
        which=CleanUpWhich(row.which),
        group_id=None if row.job_group is None else GroupId(row.job_group),
        job_id=None if row.job_id is None else JobId(row.job_id),
        after_id=row.after_id,
        below_id=row.below_id,
        about=row.about,
        deleted=row.deleted,
        actor=row.actor,
        created_ms=row.created_ms,
        updated_ms=row.updated_ms,
        ended_ms=row.ended_ms,
    )
