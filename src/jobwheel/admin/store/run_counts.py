"""Counting runs by slice, group and state: those of a stretch of time, of a range of ids, or of a list of ids."""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, case, func, literal_column, or_, select

from jobwheel.admin.domain.ids import GroupId, RunId
from jobwheel.admin.domain.report import RunCounts
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.store.dialects import Statements, statements
from jobwheel.admin.store.dialects.base import PRIMARY_KEY
from jobwheel.admin.store.tables import job_log

RUNNING: Final = and_(job_log.c.trigger_code.in_([0, 200]), job_log.c.handle_code == 0)
"""A run that is open to the reference, which knows the codes alone (`storage.md`)."""

_STATE: Final = case((RUNNING, "running"), (job_log.c.handle_code == 200, "succeeded"), else_="failed")
# Both, and in the text itself: so the databases see that the index of the runs that did not succeed holds all of them.
_IS_LOST: Final[ColumnElement[bool]] = literal_column("outcome <> 'succeeded' AND outcome = 'lost'")
# A run that is lost may still get its result. Each run that may change is a row of its own, so that one query tells
# both what was counted of it and that it was.
_OPEN_ID: Final = case((or_(RUNNING, job_log.c.outcome == Outcome.LOST), job_log.c.id))
# Runs are written nearly in the order of their times: of the newest ones before a time the highest id is among these.
_NEARLY: Final = 1000
_AT_ONCE: Final = 5000


@dataclass(slots=True)
class SliceCounts:
    """What was found of a slice: runs that have ended; those that may still change, and which these are."""

    ended: dict[GroupId, RunCounts] = field(default_factory=dict)
    open: dict[GroupId, RunCounts] = field(default_factory=dict)
    open_ids: list[RunId] = field(default_factory=list)

    def add(self, other: "SliceCounts") -> None:
        """Add what was found elsewhere."""
        for mine, theirs in ((self.ended, other.ended), (self.open, other.open)):
            for group_id, counts in theirs.items():
                mine[group_id] = mine.get(group_id, RunCounts()) + counts
        self.open_ids += other.open_ids

    @property
    def groups(self) -> dict[GroupId, RunCounts]:
        """All runs, by group."""
        groups = dict(self.ended)
        for group_id, counts in self.open.items():
            groups[group_id] = groups.get(group_id, RunCounts()) + counts
        return groups

    @property
    def lost(self) -> int:
        """How many of them are lost so far."""
        return sum(counts.total - counts.running for counts in self.open.values())


@dataclass(slots=True)
class Counted:
    """What a query found, by the beginnings of the slices; `runs` has those in it that have no trigger time."""

    slices: dict[datetime, SliceCounts] = field(default_factory=dict)
    runs: int = 0

    def add(self, other: "Counted") -> None:
        """Add what another query found."""
        for begins, counts in other.slices.items():
            self.slices.setdefault(begins, SliceCounts()).add(counts)
        self.runs += other.runs


def in_time(from_wall: datetime, until_wall: datetime) -> ColumnElement[bool]:
    """Runs triggered from a wall time (included) to another (not included)."""
    return and_(job_log.c.trigger_time >= from_wall, job_log.c.trigger_time < until_wall)


def count_in_time(
    connection: Connection, from_wall: datetime, until_wall: datetime, up_to_id: int | None = None
) -> Counted:
    """Count the runs triggered in a stretch of wall time; with a bound, those of ids up to it."""
    hot = statements(connection)
    query = _counting(hot).where(in_time(from_wall, until_wall))
    if up_to_id is not None:
        query = query.where(job_log.c.id <= up_to_id)
    return _counted(connection.execute(hot.by_index(query, job_log, "i_trigger_time")))


def count_by_id(connection: Connection, after_id: int, up_to_id: int | None = None) -> Counted:
    """Count the runs of ids after one, up to another."""
    hot = statements(connection)
    query = _counting(hot).where(job_log.c.id > after_id)
    if up_to_id is not None:
        query = query.where(job_log.c.id <= up_to_id)
    return _counted(connection.execute(hot.by_index(query, job_log, PRIMARY_KEY)))


def count_among(connection: Connection, run_ids: Sequence[RunId]) -> Counted:
    """Count these runs, of those that are there."""
    hot = statements(connection)
    # mypy takes no protocol for hashable.
    query = _counting_among(hot)  # type: ignore[arg-type]
    found = Counted()
    for first in range(0, len(run_ids), _AT_ONCE):
        found.add(_counted(hot.all_rows(connection, query, {"run_ids": list(run_ids[first : first + _AT_ONCE])})))
    return found


@dataclass(frozen=True, slots=True)
class Edges:
    """The highest ids: of runs triggered long ago, of those triggered a little while ago, and of all; 0 = none."""

    old: int
    recent: int
    newest: int


def find_edges(connection: Connection, old: datetime, recent: datetime) -> Edges:
    """Find the highest ids of the runs triggered up to two wall times, or nearly, and of all runs."""
    newest = connection.execute(select(func.max(job_log.c.id))).scalar() or 0
    return Edges(_last_id_before(connection, old), _last_id_before(connection, recent), newest)


def _last_id_before(connection: Connection, wall: datetime) -> int:
    before = select(job_log.c.id).where(job_log.c.trigger_time <= wall)
    before = statements(connection).by_index(before, job_log, "i_trigger_time")
    newest = before.order_by(job_log.c.trigger_time.desc()).limit(_NEARLY).subquery()
    return connection.execute(select(func.max(newest.c.id))).scalar() or 0


def lost_in_slices(connection: Connection, from_wall: datetime) -> dict[datetime, int]:
    """How many of the runs triggered from a wall time on are lost, by slice; slices without any are left out."""
    hot = statements(connection)
    first = select(job_log.c.id).where(job_log.c.trigger_time >= from_wall)
    first = hot.by_index(first, job_log, "i_trigger_time")
    oldest = first.order_by(job_log.c.trigger_time).limit(_NEARLY).subquery()
    first_id = connection.execute(select(func.min(oldest.c.id))).scalar()
    if first_id is None:
        return {}
    columns: tuple[Any, ...] = (hot.ten_minutes_of(job_log.c.trigger_time).label("slice"), func.count().label("runs"))
    query = (
        select(*columns)
        .where(_IS_LOST, job_log.c.id >= first_id, job_log.c.trigger_time >= from_wall)
        .group_by("slice")
    )
    rows = connection.execute(hot.by_index(query, job_log, "jobwheel_log_outcome"))
    return {_begin_of(slice_text): runs for slice_text, runs in rows}


def _counting(hot: Statements) -> Select[Any]:
    return select(
        hot.ten_minutes_of(job_log.c.trigger_time).label("slice"),
        job_log.c.job_group,
        _STATE.label("state"),
        _OPEN_ID.label("open_id"),
        func.count().label("runs"),
    ).group_by("slice", job_log.c.job_group, "state", "open_id")


@functools.cache
def _counting_among(hot: Statements) -> Select[Any]:
    return hot.by_index(_counting(hot).where(hot.among(job_log.c.id, "run_ids")), job_log, PRIMARY_KEY)


def _counted(rows: Iterable[Row[Any]] | Sequence[Sequence[Any]]) -> Counted:
    counted = Counted()
    for slice_text, group, state, open_id, runs in rows:
        counted.runs += runs
        if slice_text is None:
            continue
        found = counted.slices.setdefault(_begin_of(slice_text), SliceCounts())
        counts = found.ended if open_id is None else found.open
        counts[GroupId(group)] = counts.get(GroupId(group), RunCounts()) + RunCounts(**{state: runs})
        if open_id is not None:
            found.open_ids.append(RunId(open_id))
    return counted


@functools.lru_cache(maxsize=1024)
def _begin_of(slice_text: str) -> datetime:
    """When a slice begins that is named to ten minutes, such as `2026-11-27 10:3`."""
    return datetime.fromisoformat(f"{slice_text}0")
