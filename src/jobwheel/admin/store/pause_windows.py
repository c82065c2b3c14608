"""Pause windows of jobs. Whoever writes them holds the job's row."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from sqlalchemy import Connection, delete, insert, select

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.job import PauseWindow
from jobwheel.admin.store.tables import pause_window

# Made once, and asked first: most installations have none, and each claim wants those of a thousand jobs.
_ANY = select(pause_window.c.id).limit(1)


def read_windows(
    connection: Connection, job_ids: Iterable[JobId], ended_after_ms: int | None = None
) -> Mapping[JobId, tuple[PauseWindow, ...]]:
    """The windows of these jobs, of each in order; jobs that have none are not in the answer.

    With `ended_after_ms` only those whose end is later.
    """
    if connection.execute(_ANY).first() is None:
        return {}
    query = select(pause_window).where(pause_window.c.job_id.in_(list(job_ids)))
    if ended_after_ms is not None:
        query = query.where(pause_window.c.until_ms > ended_after_ms)
    rows = connection.execute(query.order_by(pause_window.c.job_id, pause_window.c.from_ms, pause_window.c.id)).all()
    return {
        JobId(job_id): tuple(PauseWindow(row.from_ms, row.until_ms, row.remark or "") for row in of_job)
        for job_id, of_job in groupby(rows, lambda row: row.job_id)
    }


def write_windows(connection: Connection, job_id: JobId, windows: Sequence[PauseWindow]) -> None:
    """Make these the windows of a job; rows are written only if they are not so already."""
    if read_windows(connection, [job_id]).get(job_id, ()) == tuple(windows):
        return
    delete_windows(connection, job_id)
    if windows:
        rows = [
            {"job_id": job_id, "from_ms": each.from_ms, "until_ms": each.until_ms, "remark": each.remark or None}
            for each in windows
        ]
        connection.execute(insert(pause_window), rows)


def delete_windows(connection: Connection, job_id: JobId) -> None:
    """Remove all windows of a job."""
    connection.execute(delete(pause_window).where(pause_window.c.job_id == job_id))
