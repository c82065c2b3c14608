"""What is asked of the run log of `benchmarks.rows_fill`, in the store's own words."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from sqlalchemy import text

from benchmarks.rows_fill import (
    ADDRESS,
    API_JOB,
    BIG_GROUP,
    BIG_JOB,
    DAY_MS,
    DEAD_NODE,
    EMPTY_GROUP,
    NODE,
    OLD_ADDRESS,
    OLD_GROUP,
    OLD_JOB,
    SMALL_GROUP,
    SMALL_JOB,
)
from jobwheel.admin.domain.clean_up import CleanUpWhich
from jobwheel.admin.domain.ids import GroupId, JobId, NodeId, RunId
from jobwheel.admin.domain.run import Outcome, Phase, TriggerType
from jobwheel.admin.store import (
    Connection,
    checks,
    claims,
    clean_ups,
    jobs,
    limits,
    nodes,
    old_runs,
    run_causes,
    run_list,
    run_log,
    runs,
)
from jobwheel.admin.store.jobs import JobFilter
from jobwheel.admin.store.run_list import RunFilter
from jobwheel.admin.store.zone import InstallationZone
from tests.support.store import NOW_MS, ZONE

PAGE: Final = 51
"""A page of 50, and the one more that says whether there is another page."""

_HORIZON_MS: Final = NOW_MS + 10_000
_LOOKS: Final = nodes.FirstLooks(60_000, 10_000)
_NEW_NODE: Final = NodeId(9)


@dataclass(frozen=True, slots=True)
class Query:
    """A function of the store with its arguments. One that changes something is rolled back.

    Of one that reads several pages the time is that of a page.
    """

    name: str
    work: Callable[..., object]
    args: tuple[object, ...] = ()
    changes: bool = False
    pages: int = 1

    @property
    def bounded(self) -> bool:
        """Whether it may take 50 ms at most; what changes rows takes the time that these need."""
        return not self.changes


def queries(rows: int) -> Iterator[Query]:
    """All of them, for a log of so many rows."""
    yield from _engine(rows)
    yield from _of_a_job()
    for name, wanted in FILTERS.items():
        yield Query(f"list: {name}", run_list.list_runs, (wanted, None, PAGE))
        yield Query(f"list: {name}, page 2", _second_page, (wanted,), pages=2)
        yield Query(f"list: {name}, deep", run_list.list_runs, (wanted, rows // 2, PAGE))


def _engine(rows: int) -> Iterator[Query]:
    some = [RunId(run_id) for run_id in range(rows - rows // 1000 + 1, rows)][:1000]
    yield Query("due jobs", claims.due_jobs, (NOW_MS, 1000))
    yield Query("own pending", runs.own_pending_ids, (NODE, _HORIZON_MS, 20_000))
    yield Query("own pending but a job's", runs.own_pending_ids, (NODE, _HORIZON_MS, 20_000, (BIG_JOB,)))
    yield Query("load 1,000 pending", runs.load_pending, (NODE, some))
    yield Query("has ownerless", runs.has_ownerless, (_HORIZON_MS,))
    yield Query("sending for long", run_log.sending_since, (NODE, NOW_MS, 200))
    yield Query("unconfirmed and due", checks.due_checks, (NOW_MS + 3_600_000, 200))
    yield Query("unconfirmed, none due", checks.due_checks, (NOW_MS - 70 * DAY_MS, 200))
    yield Query("failed, not handled", failed_not_handled)
    yield Query("accepted, no look set", nodes.look_at_all_accepted, (NOW_MS,), changes=True)
    yield Query("waiting for room", limits.jobs_with_waiting)
    old = datetime(2026, 10, 20)  # noqa: DTZ001 - wall time of the installation
    yield Query("retention: a slice", old_runs.old_runs, (old, None, frozenset[JobId](), 200))
    yield Query("clean-up: what it comes to", _bounds_of_a_clean_up, (old,), changes=True)
    yield Query("adopt 100 ownerless", runs.adopt_ownerless, (NODE, _HORIZON_MS, 100), changes=True)
    dead = (_NEW_NODE, NOW_MS + 1000, DAY_MS // 2, _LOOKS)
    yield Query("adopt a dead node's", nodes.adopt_dead, dead, changes=True)
    none_dead = (_NEW_NODE, NOW_MS + 1000, 2 * DAY_MS, _LOOKS)
    yield Query("look for dead nodes", nodes.adopt_dead, none_dead, changes=True)
    yield Query("adopt all", nodes.adopt_all, (_NEW_NODE, NOW_MS, _LOOKS), changes=True)
    yield Query("release at a stop", runs.release_pending, (DEAD_NODE,), changes=True)


def _of_a_job() -> Iterator[Query]:
    for name, job_id in JOBS.items():
        yield Query(f"open runs: {name}", runs.has_open_runs, (job_id,))
        yield Query(f"last planned: {name}", run_causes.last_planned, (job_id,))
        yield Query(f"remove planned: {name}", runs.remove_planned, (job_id, NOW_MS), changes=True)
        yield Query(f"remove pending: {name}", runs.remove_pending, (job_id,), changes=True)
        yield Query(f"clean up 200: {name}", run_list.delete_runs_of_job, (job_id, 200), changes=True)
    yield Query("run by id", run_list.get_run, (RunId(4_711),))
    zone = InstallationZone(ZONE)
    yield Query("jobs: part of a name", jobs.list_jobs, (zone, JobFilter(name="REGION 199"), 0, PAGE))
    yield Query("jobs: unknown name", jobs.list_jobs, (zone, JobFilter(name="nobody"), 0, PAGE))


def _second_page(connection: Connection, wanted: RunFilter) -> object:
    """Both pages: where the second one begins is what the first one says."""
    first = run_list.list_runs(connection, wanted, None, PAGE)
    return run_list.list_runs(connection, wanted, first[-2].id, PAGE) if len(first) == PAGE else first


def _bounds_of_a_clean_up(connection: Connection, before: datetime) -> object:
    which = CleanUpWhich.OLDER_THAN_1_MONTH
    made = clean_ups.insert_clean_up(connection, clean_ups.NewCleanUp(which, None, None, before, "benchmark", NOW_MS))
    return clean_ups.find_bounds(connection, made.id).about


def failed_not_handled(connection: Connection) -> object:
    """What a Java admin wrote and nobody followed up. No function of the store asks for it yet; its index is there.

    In the order of that index: a planner that takes the columns to be independent of each other expects so many such
    rows that reading the log until there are 200 looks cheap, and where nearly all failures are handled it is not.
    """
    failed = text(
        "SELECT id FROM xxl_job_log WHERE alarm_status = 0 AND (trigger_code NOT IN (0, 200) "
        "OR handle_code NOT IN (0, 200)) AND (handle_code NOT IN (0, 200) OR handle_code = 0) "
        "ORDER BY alarm_status, handle_code, trigger_code LIMIT 200"
    )
    return connection.execute(failed).scalars().all()


JOBS: Final[dict[str, JobId]] = {
    "a job": SMALL_JOB,
    "the big job": BIG_JOB,
    "a job of the API": API_JOB,
    "a job long stopped": OLD_JOB,
    "no job": JobId(99_999),
}

_TODAY: Final = RunFilter(planned_from_ms=NOW_MS - DAY_MS)
_A_DAY: Final = RunFilter(planned_from_ms=NOW_MS - 30 * DAY_MS, planned_until_ms=NOW_MS - 29 * DAY_MS)
_LATELY: Final = RunFilter(planned_from_ms=NOW_MS - 50 * DAY_MS)
_BEFORE: Final = RunFilter(planned_until_ms=NOW_MS - 70 * DAY_MS)
_RANGES: Final = {"": RunFilter(), " and a day": _A_DAY, " and 50 days": _LATELY}
_WHOSE: Final = {
    "a job": RunFilter(job_id=SMALL_JOB),
    "the big job": RunFilter(job_id=BIG_JOB),
    "a job of the API": RunFilter(job_id=API_JOB),
    "a job long stopped": RunFilter(job_id=OLD_JOB),
    "a group": RunFilter(group_id=SMALL_GROUP),
    "the big group": RunFilter(group_id=BIG_GROUP),
    "a group long stopped": RunFilter(group_id=OLD_GROUP),
    "an empty group": RunFilter(group_id=EMPTY_GROUP),
    # As somebody to whom some groups alone exist sees the log.
    "two groups": RunFilter(group_ids=frozenset({SMALL_GROUP, BIG_GROUP})),
    "most groups": RunFilter(group_ids=frozenset(GroupId(n) for n in range(1, 18))),
    "groups long stopped": RunFilter(group_ids=frozenset({OLD_GROUP, EMPTY_GROUP})),
    "a job in two groups": RunFilter(job_id=SMALL_JOB, group_ids=frozenset({SMALL_GROUP, GroupId(8)})),
    "an address in two groups": RunFilter(executor_address=ADDRESS, group_ids=frozenset({SMALL_GROUP, BIG_GROUP})),
    "an address": RunFilter(executor_address=ADDRESS),
    "an address long gone": RunFilter(executor_address=OLD_ADDRESS),
}
_FAILED: Final = {
    "": RunFilter(),
    ", failed": RunFilter(outcome=Outcome.FAILED),
    ", killed": RunFilter(outcome=Outcome.KILLED),
    ", succeeded": RunFilter(outcome=Outcome.SUCCEEDED),
    ", manual": RunFilter(trigger_type=TriggerType.MANUAL),
    ", cron": RunFilter(trigger_type=TriggerType.CRON),
    ", accepted": RunFilter(phase=Phase.ACCEPTED),
}


def _both(one: RunFilter, other: RunFilter) -> RunFilter:
    given = {name: getattr(other, name) for name in RunFilter.__slots__ if getattr(other, name) is not None}
    return replace(one, **given)


def _filters() -> Iterator[tuple[str, RunFilter]]:
    yield "none", RunFilter()
    yield "today", _TODAY
    yield "before all", _BEFORE
    for which, of_which in {"all": RunFilter(), **_WHOSE}.items():
        for how, ended_how in _FAILED.items():
            for when, planned_when in _RANGES.items():
                if (which, how, when) != ("all", "", ""):
                    yield f"{which}{how}{when}", _both(_both(of_which, ended_how), planned_when)


FILTERS: Final[dict[str, RunFilter]] = dict(_filters())
"""What people choose in the console: whose runs, how they ended, when they were planned, and any two or three of it."""
