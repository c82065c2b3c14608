"""What was counted of the run log: by slice, and by day and group."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Final

from sqlalchemy import Connection, and_, delete, func, insert, select, update

from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.report import NO_JOB, DayCounts, RunCounts, Slice, day_start
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.tables import daily_count, job_log_report, run_slice
from jobwheel.admin.store.turns import UPKEEP_LOCK

_SLICE_FORM: Final = "%Y-%m-%d %H:%M"


def load_slices(connection: Connection) -> dict[datetime, Slice]:
    """All slices that are kept, by when they begin."""
    return {
        _begin_of(row.slice_start): Slice(
            row.counted_ms,
            bool(row.is_settled),
            _groups(row.counts),
            row.lost_count,
            row.recounts,
            JobId(row.settled_job),
        )
        for row in connection.execute(select(run_slice))
    }


def store_slices(connection: Connection, slices: Mapping[datetime, Slice]) -> None:
    """Write what was counted of slices. One without runs is settled by it, if it is; any other is not.

    One that is to be counted anew since it was read is left alone: what was counted may be older than that.
    """
    statements(connection).wait_for_lock(connection, UPKEEP_LOCK)
    rows = {slice_name(begins): _slice_row(begins, each) for begins, each in sorted(slices.items())}
    query = select(run_slice.c.slice_start).where(run_slice.c.slice_start.in_(list(rows)))
    there = set(connection.execute(query).scalars())
    new = [row for name, row in rows.items() if name not in there]
    if new:
        connection.execute(insert(run_slice), new)
    for name in sorted(there):
        row = rows[name]
        values = {each: row[each] for each in ("counted_ms", "counts", "lost_count")}
        if row["is_settled"]:
            values["is_settled"] = 1
        as_read = and_(run_slice.c.slice_start == name, run_slice.c.recounts == row["recounts"])
        connection.execute(update(run_slice).where(as_read).values(values))


def settle_slices(
    connection: Connection, begins: Sequence[datetime], after: JobId = NO_JOB, until: JobId | None = None
) -> bool:
    """Settle slices that have runs, all of them, for the jobs after one, until another or to the end.

    False, and nothing is done, if one is settled for other jobs than those until `after`: its statistics are in then.
    """
    statements(connection).wait_for_lock(connection, UPKEEP_LOCK)
    theirs = and_(
        run_slice.c.slice_start.in_([slice_name(each) for each in begins]),
        run_slice.c.is_settled == 0,
        run_slice.c.settled_job == after,
    )
    if connection.execute(select(func.count()).select_from(run_slice).where(theirs)).scalar_one() < len(begins):
        return False
    settled = {"is_settled": 1} if until is None else {"settled_job": until}
    connection.execute(update(run_slice).where(theirs).values(settled))
    return True


def recount_slices(connection: Connection) -> None:
    """Have all slices counted anew: runs in them were removed."""
    connection.execute(update(run_slice).values(counted_ms=0, recounts=run_slice.c.recounts + 1))


def delete_slices(connection: Connection, before: datetime) -> None:
    """Forget settled slices of days that are counted no more."""
    over = run_slice.c.slice_start < slice_name(before)
    connection.execute(delete(run_slice).where(over, run_slice.c.is_settled == 1))


def slice_name(begins: datetime) -> str:
    """A slice's key: when it begins, to the minute."""
    return begins.strftime(_SLICE_FORM)


def store_days(connection: Connection, days: Sequence[DayCounts], update_time: datetime) -> None:
    """Write days' counts, over older ones, in the reference's table as a whole and in ours by group."""
    hot = statements(connection)
    for each in sorted(days, key=lambda counted: counted.day):
        values = {**_counts_row(each.total), "update_time": update_time}
        hot.upsert(connection, job_log_report, {"trigger_day": day_start(each.day)}, values)
        for group_id, counts in sorted(each.groups.items()):
            key = {"day": each.day.isoformat(), "job_group": group_id}
            hot.upsert(connection, daily_count, key, _counts_row(counts))
        gone = daily_count.c.job_group.not_in(list(each.groups))
        connection.execute(delete(daily_count).where(daily_count.c.day == each.day.isoformat(), gone))


def load_days(
    connection: Connection, first: date, last: date, group_ids: Collection[GroupId] | None = None
) -> list[DayCounts]:
    """The days that are counted, from the first to the last one, by group; all groups or these."""
    query = select(daily_count).where(daily_count.c.day.between(first.isoformat(), last.isoformat()))
    if group_ids is not None:
        query = query.where(daily_count.c.job_group.in_(group_ids))
    days: dict[str, dict[GroupId, RunCounts]] = {}
    for row in connection.execute(query.order_by(daily_count.c.day, daily_count.c.job_group)):
        counts = RunCounts(row.running_count, row.suc_count, row.fail_count)
        days.setdefault(row.day, {})[GroupId(row.job_group)] = counts
    return [DayCounts(date.fromisoformat(day), groups) for day, groups in days.items()]


def load_totals(connection: Connection, first: date, last: date) -> dict[date, RunCounts]:
    """The days of the reference's table, from the first to the last one."""
    days = job_log_report.c.trigger_day.between(day_start(first), day_start(last))
    return {
        row.trigger_day.date(): RunCounts(row.running_count, row.suc_count, row.fail_count)
        for row in connection.execute(select(job_log_report).where(days).order_by(job_log_report.c.trigger_day))
    }


def _slice_row(begins: datetime, counted: Slice) -> dict[str, object]:
    return {
        "slice_start": slice_name(begins),
        "counted_ms": counted.counted_ms,
        "is_settled": int(counted.is_settled and not counted.counts),
        "counts": _text(counted.counts),
        "lost_count": counted.lost,
        "recounts": counted.recounts,
    }


def _begin_of(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _counts_row(counts: RunCounts) -> dict[str, object]:
    return {"running_count": counts.running, "suc_count": counts.succeeded, "fail_count": counts.failed}


def _text(groups: Mapping[GroupId, RunCounts]) -> str:
    return json.dumps({group: [each.running, each.succeeded, each.failed] for group, each in sorted(groups.items())})


def _groups(text: str) -> dict[GroupId, RunCounts]:
    return {GroupId(int(group)): RunCounts(*counts) for group, counts in json.loads(text).items()}
