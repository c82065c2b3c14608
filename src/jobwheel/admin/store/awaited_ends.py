"""FIX_DELAY jobs that wait for the end of a run and have none: whoever ended it did not see that they wait.

It may have ended in the moment in which the job was started, or was made one of FIX_DELAY, or have been removed.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, exists, select

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.job_keys import hold_jobs
from jobwheel.admin.store.tables import job_info, job_log

_MOST = 500


def jobs_without_end(connection: Connection) -> Sequence[JobId]:
    """Some of the jobs that wait for the end of a run though none of theirs is open."""
    has_open_run = exists().where(job_log.c.job_id == job_info.c.id, job_log.c.phase.is_not(None))
    query = (
        select(job_info.c.id)
        .where(
            job_info.c.trigger_status == 1,
            job_info.c.trigger_next_time == AWAITING_SETTLEMENT_MS,
            job_info.c.schedule_type == "FIX_DELAY",
            ~has_open_run,
        )
        .limit(_MOST)
    )
    query = statements(connection).by_index(query, job_info, "jobwheel_info_due")
    return [JobId(job_id) for job_id in connection.execute(query).scalars()]


def let_go_on(connection: Connection, now_ms: int) -> bool:
    """Give such jobs their next time, as if a run of theirs had ended now; whether there was one."""
    jobs = jobs_without_end(connection)
    # Whoever makes a run of theirs holds them: what is seen of their runs after that stays so.
    hold_jobs(connection, jobs)
    return statements(connection).reschedule_fix_delay(connection, dict.fromkeys(jobs, now_ms))
