"""On 200,000 runs no query of the engine, and no first page of the run list, reads its way through the log."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from jobwheel.admin.domain.alarm import JobAlarms, Notice
from jobwheel.admin.domain.clean_up import CleanUpWhich
from jobwheel.admin.domain.ids import GroupId, JobId, NodeId, RunId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.retries import EndedRun
from jobwheel.admin.domain.run import Outcome, Phase, TriggerType
from jobwheel.admin.domain.writes import Accepted, Cancelled, Settlement, Unanswered
from jobwheel.admin.store import (
    Connection,
    alarm_outbox,
    alarm_sending,
    alarm_watch,
    awaited_ends,
    chain_list,
    chains,
    checks,
    claims,
    clean_ups,
    held_jobs,
    job_activity,
    kills,
    limits,
    nodes,
    old_runs,
    pause_windows,
    run_causes,
    run_chains,
    run_counts,
    run_list,
    run_log,
    runs,
    schema,
    statistics,
)
from jobwheel.admin.store.alarm_backlogs import look_for_backlogs
from jobwheel.admin.store.checks import CheckLater
from jobwheel.admin.store.database import open_database
from jobwheel.admin.store.dialects.sqlite import _RESCHEDULE_FIX_DELAY
from jobwheel.admin.store.job_alarms import stored_alarms
from jobwheel.admin.store.run_chains import ChainRun
from jobwheel.admin.store.run_list import RunFilter
from jobwheel.admin.store.tables import alarm_watch as alarm_watch_table
from jobwheel.admin.store.tables import job_info
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import SystemClock
from tests.support.plans import Seen, SeenError, analyze, insert_many, look
from tests.support.run_servers import Servers
from tests.support.servers import SERVER_KINDS
from tests.support.store import FIRST_LOOKS, JOB_COLUMNS, KINDS, NOW_MS, ZONE, sqlite_url, take_off

See = Callable[..., Awaitable[Seen]]

# The first test of a kind fills its database.
pytestmark = pytest.mark.timeout(60)

RUNS = 200_000
JOBS = 2_000
NODE = NodeId(3)
_AT = datetime(2026, 11, 27, 10, 30)  # noqa: DTZ001 - wall time of the installation

# The last two hours, in each of which 360 runs were triggered.
_LATELY = (_AT - timedelta(hours=2), _AT)

_LOG_COLUMNS = (
    *("job_group", "job_id", "executor_address", "trigger_time", "trigger_code", "handle_code", "planned_ms", "due_ms"),
    *("triggered_ms", "trigger_type", "phase", "outcome", "owner", "check_ms"),
)
_AT_ONCE = 20_000


def _rows() -> Iterator[tuple[object, ...]]:
    """Runs of the last weeks, nearly all of them done well; the newest are open; a few are what people look for."""
    for n in range(RUNS):
        at_ms = NOW_MS - (RUNS - n) * 10_000
        phase = outcome = owner = check_ms = None
        address, codes, cause = f"http://10.0.0.{n % 9}:9999/", (200, 200), "CRON"
        if n >= RUNS - 2_000:
            phase, codes = ("pending", "sending", "unconfirmed", "accepted")[n % 4], (0, 0)
            owner = NODE if n % 4 < 2 else None
            # Most of what an executor has is not silent yet.
            check_ms = NOW_MS + (0 if n % 40 in (2, 3) else 60_000) if phase in ("unconfirmed", "accepted") else None
        else:
            outcome = "succeeded"
        if n % 5_000 == 77 and phase is None:
            outcome, codes = "failed", (500, 0)
        if n % 20_000 == 78:
            cause = "MANUAL"
        if n == 4_711:
            address = "http://rare:9999/"
        at = _AT - timedelta(seconds=10 * (RUNS - n))
        yield (1 + n % 5, 1 + n % JOBS, address, at, *codes, at_ms, at_ms, at_ms, cause, phase,
               outcome, owner, check_ms)  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, servers: Servers) -> str:
    """A database with a log of 200,000 runs."""
    kind = request.param
    if kind == "sqlite":
        made = sqlite_url(tmp_path_factory.mktemp("plans"))
    else:
        made = servers.make_database(kind, "jobwheel_plans")
    asyncio.run(_fill(made))
    return made


async def _fill(url: str) -> None:
    database = open_database(url, SystemClock())
    await database.start()
    try:
        await database.write(schema.prepare, "test")
        rows = list(_rows())
        for first in range(0, RUNS, _AT_ONCE):
            await database.write(insert_many, "xxl_job_log", _LOG_COLUMNS, rows[first : first + _AT_ONCE])
        job = {**JOB_COLUMNS, "trigger_next_time": NOW_MS + 3_600_000}
        await database.write(insert_many, "xxl_job_info", list(job), [tuple(job.values())] * JOBS)
        windows = [(1 + n % JOBS, NOW_MS + 60_000 * n, NOW_MS + 60_000 * n + 1000) for n in range(10 * JOBS)]
        await database.write(insert_many, "jobwheel_pause_window", ["job_id", "from_ms", "until_ms"], windows)
        await database.write(analyze)
    finally:
        await database.stop()


@pytest.fixture
async def see(url: str) -> AsyncIterator[See]:
    """Runs a function of the store and explains each of its statements; nothing that it changes stays."""
    database = open_database(url, SystemClock())
    await database.start()

    async def run(work: Callable[..., object], *args: object) -> Seen:
        try:
            await database.write(look, work, args)
        except SeenError as seen:
            return seen.seen
        raise AssertionError("it sees or fails")

    yield run
    await database.stop()


ENDED = EndedRun(
    id=RunId(7),
    job_id=JobId(7),
    outcome=Outcome.FAILED,
    ended_ms=NOW_MS,
    planned_ms=NOW_MS,
    attempt=2,
    first_run_id=RunId(5),
    parent_run_id=RunId(3),
    retries_stored=1,
    is_foreign=False,
    parameter="",
    named_addresses=(),
    shard=None,
    broadcast_id=RunId(4),
    address="",
    has_result=True,
)


def _chain(connection: Connection) -> object:
    run = run_list.get_run(connection, RunId(7))
    assert run is not None
    return chain_list.load_chain(connection, replace(run, broadcast_id=RunId(4), parent_run_id=RunId(3)))


_CHAIN_RUN = ChainRun(
    RunId(7), JobId(7), GroupId(2), NOW_MS - 10**9, "", is_open=False, succeeded=False, chain=RunId(7)
)

_ASKS = stored_alarms(JobAlarms(success_after_failure=True))
ENGINE_QUERIES: list[tuple[str, Callable[..., object], tuple[object, ...]]] = [
    ("jobwheel_info_due", claims.due_jobs, (NOW_MS, 1000)),
    ("jobwheel_pause_window_job", pause_windows.read_windows, ([JobId(7), JobId(8)], NOW_MS)),
    ("jobwheel_log_owner", runs.has_ownerless, (NOW_MS,)),
    ("jobwheel_log_owner", runs.adopt_ownerless, (NODE, NOW_MS, 100)),
    ("jobwheel_log_owner", runs.release_pending, (NODE,)),
    ("jobwheel_log_owner", runs.count_own_due, (NODE, NOW_MS, 10_000)),
    ("jobwheel_log_owner", run_log.sending_since, (NODE, NOW_MS, 200)),
    ("jobwheel_log_check", checks.due_checks, (NOW_MS, 200)),
    ("jobwheel_log_open", kills.last_open_run, (JobId(7),)),
    ("jobwheel_log_open", kills.holders, (JobId(7),)),
    ("jobwheel_log_open", kills.open_to_kill, (JobId(7), RunId(RUNS), 1000)),
    ("jobwheel_log_owner", nodes.adopt_all, (NodeId(9), NOW_MS, FIRST_LOOKS)),
    ("jobwheel_info_limit", held_jobs.hold_jobs_of, ([RunId(7)],)),
    ("jobwheel_info_due", held_jobs.hold_jobs_of, ([RunId(7)],)),
    ("jobwheel_info_due", awaited_ends.jobs_without_end, ()),
    ("jobwheel_info_children", held_jobs.hold_jobs_of, ([RunId(7)], [RunId(7)])),
    ("jobwheel_log_first", chains.load_tries, ([ENDED],)),
    ("jobwheel_log_broadcast", chains.complete_broadcasts, ([RunId(7)],)),
    ("jobwheel_log_parent", chains.have_children, ([ENDED],)),
    ("jobwheel_log_parent", _chain, ()),
    ("jobwheel_log_owner", limits.jobs_with_waiting, ()),
    ("jobwheel_log_open", limits._on_their_way, (JobId(7), {RunId(1): (NOW_MS, RunId(1))}, frozenset(), 3)),
    ("jobwheel_log_open", limits.call_waiting, (NODE, {JobId(7): 3})),
    ("jobwheel_log_open", runs.has_open_runs, (JobId(7),)),
    ("jobwheel_log_open", runs.remove_planned, (JobId(7), NOW_MS - 10**9)),
    ("jobwheel_log_open", runs.remove_pending, (JobId(7),)),
    ("jobwheel_log_job_planned", run_causes.last_planned, (JobId(7),)),
    ("i_job_id", run_list.delete_runs_of_job, (JobId(7), 200)),
    ("jobwheel_log_job_planned", run_chains.planned_in, (JobId(7), NOW_MS - 10**9, NOW_MS)),
    ("jobwheel_log_job_planned", run_chains.later_attempts, ([_CHAIN_RUN],)),
    ("i_trigger_time", run_counts.count_in_time, _LATELY),
    ("i_trigger_time", run_counts.find_edges, _LATELY),
    ("i_trigger_time", run_counts.lost_in_slices, (_AT - timedelta(days=9),)),
    # Any of those that hold no run that succeeded.
    (r"jobwheel_log_\w*outcome\w*", run_counts.lost_in_slices, (_AT - timedelta(days=9),)),
    ("(PRIMARY|xxl_job_log_pkey)", run_counts.count_by_id, (RUNS - 3000, RUNS - 1000)),
    ("(PRIMARY|xxl_job_log_pkey)", run_counts.count_among, ([RunId(7), RunId(RUNS - 7)],)),
    ("i_trigger_time", statistics.runs_statistics, _LATELY),
    ("i_trigger_time", old_runs.old_runs, (_AT, (_AT - timedelta(days=9), 7), frozenset[JobId](), 300)),
    ("i_job_id", old_runs.old_runs_of_job, (JobId(7), _AT, 1000, 300)),
]


@pytest.mark.parametrize(
    ("index", "work", "args"), ENGINE_QUERIES, ids=[work.__name__ for _, work, _ in ENGINE_QUERIES]
)
async def test_the_engines_queries_use_their_index(
    see: See, index: str, work: Callable[..., object], args: tuple[object, ...]
) -> None:
    seen = await see(work, *args)
    assert seen.uses(index), seen.plan
    assert seen.scans == []


async def test_no_more_runs_are_looked_at_than_are_due(see: See) -> None:
    seen = await see(checks.due_checks, NOW_MS, 10)
    assert isinstance(seen.rows, list)
    assert len(seen.rows) == 10
    assert seen.sorts == []


@pytest.mark.parametrize("url", SERVER_KINDS, indirect=True)
async def test_looks_lost_runs_and_kills_find_their_rows_by_id(see: See) -> None:
    def look_and_end(connection: Connection) -> None:
        ids = [RunId(run_id) for run_id in range(RUNS - 500, RUNS)]
        checks.check_later(connection, [CheckLater(run_id, NOW_MS, NOW_MS + 60_000) for run_id in ids])
        checks.note_heard(connection, ids, NOW_MS)
        kills.ask_kill(connection, ids[:10], NOW_MS, "kill")
        ends = [Unanswered(run_id, NOW_MS, "") for run_id in ids]
        cancels = [Cancelled(run_id, NOW_MS, "") for run_id in ids]
        run_log.apply(connection, InstallationZone(ZONE), NODE, [*ends, *cancels])

    seen = await see(look_and_end)
    assert [line for line in seen.scans if "xxl_job_log" in line] == []


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_fix_delay_looks_for_open_runs_alone(see: See) -> None:
    seen = await see(lambda c: c.exec_driver_sql(_RESCHEDULE_FIX_DELAY, (NOW_MS, 7, NOW_MS)))
    assert seen.uses("jobwheel_log_open"), seen.plan
    assert seen.scans == []


async def test_what_the_jobs_of_a_page_do_is_looked_up(see: See) -> None:
    seen = await see(job_activity.load_activity, [JobId(7), JobId(8)])
    # MariaDB's index of the open runs holds the others as well.
    assert seen.uses("i_job_id") or seen.uses("jobwheel_log_open"), seen.plan
    assert [line for line in seen.scans if "xxl_job_log" in line] == []
    assert seen.sorts == []


def _failed_not_handled(connection: Connection) -> None:
    """What a Java admin wrote and nobody has followed up, by the reference's rule."""
    failed = (
        "SELECT id FROM xxl_job_log WHERE alarm_status = 0 AND (trigger_code NOT IN (0, 200) "
        "OR handle_code NOT IN (0, 200)) AND (handle_code NOT IN (0, 200) OR handle_code = 0) LIMIT 200"
    )
    connection.exec_driver_sql(failed)


async def test_failures_that_nobody_has_followed_up_are_found_by_index(see: See) -> None:
    seen = await see(_failed_not_handled)
    assert seen.scans == []
    assert seen.took_s < 0.2


def _removal(connection: Connection) -> int:
    """A slice of the retention, chosen and removed."""
    before = _AT - timedelta(days=9)
    found = old_runs.old_runs(connection, before, None, frozenset(), 300)
    return old_runs.delete_done(connection, found.run_ids)


async def test_the_retention_reads_and_removes_a_slice_alone(see: See) -> None:
    seen = await see(_removal)
    assert seen.rows == 300
    assert seen.scans == []
    assert seen.took_s < 0.2


CLEAN_UPS: list[tuple[str, GroupId | None, JobId | None]] = [
    ("older_than_1_month", None, None),
    ("but_last_10000", None, None),
    ("all", GroupId(2), None),
    ("but_last_1000", GroupId(2), None),
    ("all", None, JobId(7)),
]


@pytest.mark.parametrize(("which", "group_id", "job_id"), CLEAN_UPS)
async def test_a_clean_up_reads_a_slice_at_a_time(
    see: See, which: str, group_id: GroupId | None, job_id: JobId | None
) -> None:
    before = _AT - timedelta(days=9) if which.startswith("older") else None
    new = clean_ups.NewCleanUp(CleanUpWhich(which), group_id, job_id, before, "ada", NOW_MS)

    def clean(connection: Connection) -> None:
        made = clean_ups.insert_clean_up(connection, new)
        bounds = clean_ups.find_bounds(connection, made.id)
        clean_ups.begin(connection, made.id, bounds, NOW_MS)
        clean_ups.clean(connection, made.id, clean_ups.next_part(connection, made.id, 300), NOW_MS)

    seen = await see(clean)
    assert [line for line in seen.scans if "xxl_job_log" in line] == []
    assert seen.took_s < 0.5


def _watched_runs(connection: Connection) -> list[Notice]:
    """Late and long runs of a job among thousands: its runs alone are looked at, and of them the open ones."""
    connection.execute(alarm_watch_table.delete())
    connection.execute(alarm_watch_table.insert().values(job_id=7, late_start_s=60, long_run_s=60))
    now_ms = NOW_MS + 10**9
    late_or_long = [*alarm_watch.late_runs(connection, now_ms, 10), *alarm_watch.long_runs(connection, now_ms, 10)]
    look_for_backlogs(connection, now_ms)
    return late_or_long


async def test_open_runs_that_are_watched_are_found_without_the_log(see: See) -> None:
    seen = await see(_watched_runs)
    assert seen.rows
    assert [line for line in seen.scans if "xxl_job_log" in line] == [], seen.plan
    assert seen.took_s < 0.2


def _recovered(connection: Connection) -> bool:
    """A job that failed long ago, and has thousands of runs since."""
    alarm_watch.note_failing(connection, {JobId(7): RunId(1)})
    connection.execute(job_info.update().where(job_info.c.id == 7).values(alarm_settings=_ASKS))
    return alarm_watch.has_recovered(connection)


async def test_the_next_success_of_a_job_is_found_without_the_log(see: See) -> None:
    seen = await see(_recovered)
    assert seen.rows is True
    assert [line for line in seen.scans if "xxl_job_log" in line] == [], seen.plan
    assert seen.took_s < 0.2


def _outbox(connection: Connection) -> object:
    return alarm_sending.due_channels(connection, NOW_MS), alarm_outbox.has_ungiven(connection)


# PostgreSQL reads a table whole of which it knows nothing yet.
@pytest.mark.parametrize("url", ["sqlite", "mariadb"], indirect=True)
async def test_the_outbox_is_looked_up_by_channel_and_time(see: See) -> None:
    seen = await see(_outbox)
    assert seen.uses("jobwheel_alarm_outbox_(channel|due)"), seen.plan


def _writes(connection: Connection) -> None:
    """A batch of the run log's writer, with the last run of a FIX_DELAY job among its runs, and a claim's batch."""
    ids = [RunId(run_id) for run_id in range(RUNS - 1000, RUNS)]
    waiting = {"schedule_type": "FIX_DELAY", "schedule_conf": "7", "trigger_next_time": AWAITING_SETTLEMENT_MS}
    connection.execute(job_info.update().where(job_info.c.id == 7).values(waiting))
    run_log.take_off(connection, NODE, NOW_MS, [take_off(run_id) for run_id in ids])
    answers = [Accepted(run_id, NOW_MS, None, "accepted") for run_id in ids]
    results = [Settlement(run_id, NOW_MS, 200, Outcome.SUCCEEDED, "") for run_id in ids]
    run_log.apply(connection, InstallationZone(ZONE), NODE, [*answers, *results])
    claims.move_on(connection, [(JobId(job_id), NOW_MS, 0, NOW_MS, NOW_MS + 1, True) for job_id in range(1, 500)])


@pytest.mark.parametrize("url", SERVER_KINDS, indirect=True)
async def test_batches_look_their_rows_up_by_id(see: See) -> None:
    seen = await see(_writes)
    assert [line for line in seen.scans if "xxl_job_log" in line] == []
    assert seen.took_s < 2


FILTERS: list[tuple[str | None, RunFilter]] = [
    ("i_job_id", RunFilter(job_id=JobId(7))),
    ("i_job_group", RunFilter(group_id=GroupId(2))),
    ("jobwheel_log_owner", RunFilter(phase=Phase.ACCEPTED)),
    ("jobwheel_log_outcome", RunFilter(outcome=Outcome.FAILED)),
    ("jobwheel_log_outcome", RunFilter(outcome=Outcome.LOST)),
    ("jobwheel_log_cause", RunFilter(trigger_type=TriggerType.MANUAL)),
    ("jobwheel_log_cause", RunFilter(trigger_type=TriggerType.BACKFILL)),
    ("jobwheel_log_planned", RunFilter(planned_from_ms=NOW_MS - 60_000)),
    ("jobwheel_log_planned", RunFilter(planned_from_ms=NOW_MS - 10**10)),
    ("jobwheel_log_planned", RunFilter(planned_until_ms=NOW_MS - 10**9)),
    ("jobwheel_log_planned", RunFilter(planned_from_ms=NOW_MS - 10**9, planned_until_ms=NOW_MS - 10**9 + 60_000)),
    (None, RunFilter()),
    (None, RunFilter(outcome=Outcome.SUCCEEDED)),
    (None, RunFilter(trigger_type=TriggerType.CRON)),
    ("jobwheel_log_address", RunFilter(executor_address="http://10.0.0.3:9999/")),
    ("jobwheel_log_address", RunFilter(executor_address="http://rare:9999/")),
    ("jobwheel_log_address", RunFilter(executor_address="http://never:9999/")),
]


@pytest.mark.parametrize(("index", "wanted"), FILTERS)
async def test_the_first_page_of_the_run_list(see: See, index: str | None, wanted: RunFilter) -> None:
    seen = await see(run_list.list_runs, wanted, None, 50)
    if index is None:
        # Nearly every row matches: the newest rows are read until the page is full.
        assert seen.sorts == []
    else:
        assert seen.uses(index), seen.plan
        assert seen.scans == []
    assert seen.took_s < 0.2


SEVERAL: list[RunFilter] = [
    RunFilter(),
    RunFilter(outcome=Outcome.SUCCEEDED),
    RunFilter(outcome=Outcome.FAILED),
    RunFilter(outcome=Outcome.KILLED, planned_from_ms=NOW_MS - 10**10),
    RunFilter(phase=Phase.ACCEPTED),
    RunFilter(planned_from_ms=NOW_MS - 10**10),
    RunFilter(trigger_type=TriggerType.MANUAL),
    RunFilter(job_id=JobId(7)),
    RunFilter(executor_address="http://10.0.0.3:9999/"),
]


@pytest.mark.parametrize("groups", [{1, 3}, {4, 5, 6, 7}, {98, 99}], ids=str)
@pytest.mark.parametrize("wanted", SEVERAL)
@pytest.mark.parametrize("before_id", [None, 150_000])
async def test_who_may_see_some_groups_never_has_the_whole_log_read(
    see: See, wanted: RunFilter, groups: set[int], before_id: int | None
) -> None:
    seen = await see(run_list.list_runs, replace(wanted, group_ids=frozenset(map(GroupId, groups))), before_id, 50)
    assert [line for line in seen.scans if "xxl_job_log" in line] == [], seen.plan
    assert seen.took_s < 0.2


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_each_group_is_asked_for_its_page_in_the_order_of_an_index(see: See) -> None:
    """Of the parts alone; the rows of the page, fifty of each group, are few enough to be sorted."""
    groups = frozenset({GroupId(1), GroupId(3)})
    for index, wanted in (
        ("i_job_group", RunFilter(group_ids=groups)),
        ("jobwheel_log_group_planned", RunFilter(group_ids=groups, planned_from_ms=NOW_MS - 10**10)),
        ("jobwheel_log_group_outcome", RunFilter(group_ids=groups, outcome=Outcome.FAILED)),
    ):
        seen = await see(run_list.list_runs, wanted, None, 50)
        assert sum(index in line for line in seen.plan) == len(groups), seen.plan


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("outcome", [None, Outcome.SUCCEEDED])
async def test_the_runs_at_an_address_within_a_time_are_not_sorted(see: See, outcome: Outcome | None) -> None:
    wanted = RunFilter(executor_address="http://10.0.0.3:9999/", outcome=outcome, planned_from_ms=NOW_MS - 10**10)
    seen = await see(run_list.list_runs, wanted, None, 50)
    assert seen.uses("jobwheel_log_address_planned"), seen.plan
    assert seen.sorts == []


@pytest.mark.parametrize("url", ["mariadb"], indirect=True)
async def test_the_failures_of_a_group_within_a_time_are_not_looked_for_among_all_runs(see: See) -> None:
    wanted = RunFilter(group_id=GroupId(2), outcome=Outcome.FAILED, planned_from_ms=NOW_MS - 10**10)
    seen = await see(run_list.list_runs, wanted, None, 50)
    assert not seen.uses("jobwheel_log_planned"), seen.plan


LATELY_MS = NOW_MS - 10**9
COMBINED: list[tuple[str, RunFilter]] = [
    ("jobwheel_log_job_planned", RunFilter(job_id=JobId(7), planned_from_ms=LATELY_MS)),
    ("jobwheel_log_job_planned", RunFilter(job_id=JobId(7), outcome=Outcome.SUCCEEDED, planned_from_ms=LATELY_MS)),
    (
        "jobwheel_log_job_planned",
        RunFilter(job_id=JobId(7), trigger_type=TriggerType.MANUAL, planned_from_ms=LATELY_MS),
    ),
    ("jobwheel_log_group_planned", RunFilter(group_id=GroupId(2), planned_from_ms=LATELY_MS)),
    ("i_job_group", RunFilter(group_id=GroupId(2), outcome=Outcome.SUCCEEDED)),
    ("jobwheel_log_cause", RunFilter(group_id=GroupId(2), trigger_type=TriggerType.MANUAL)),
    ("jobwheel_log_owner", RunFilter(group_id=GroupId(2), phase=Phase.ACCEPTED, planned_from_ms=LATELY_MS)),
    ("jobwheel_log_open", RunFilter(job_id=JobId(7), phase=Phase.ACCEPTED, planned_from_ms=LATELY_MS)),
]
FEW: list[tuple[str, RunFilter]] = [
    ("jobwheel_log_outcome_planned", RunFilter(outcome=Outcome.FAILED, planned_from_ms=LATELY_MS)),
    ("jobwheel_log_job_outcome", RunFilter(job_id=JobId(7), outcome=Outcome.KILLED)),
    ("jobwheel_log_job_outcome_planned", RunFilter(job_id=JobId(7), outcome=Outcome.FAILED, planned_from_ms=LATELY_MS)),
    ("jobwheel_log_group_outcome", RunFilter(group_id=GroupId(2), outcome=Outcome.KILLED)),
    (
        "jobwheel_log_group_outcome_planned",
        RunFilter(group_id=GroupId(2), outcome=Outcome.FAILED, planned_from_ms=LATELY_MS),
    ),
    ("jobwheel_log_address_outcome", RunFilter(executor_address="http://10.0.0.3:9999/", outcome=Outcome.KILLED)),
    (
        "jobwheel_log_address_outcome_planned",
        RunFilter(executor_address="http://10.0.0.3:9999/", outcome=Outcome.FAILED, planned_from_ms=LATELY_MS),
    ),
]


@pytest.mark.parametrize("url", ["sqlite", "mariadb"], indirect=True)
@pytest.mark.parametrize(("index", "wanted"), COMBINED)
async def test_a_first_page_of_several_conditions(see: See, index: str, wanted: RunFilter) -> None:
    seen = await see(run_list.list_runs, wanted, None, 50)
    assert seen.uses(index), seen.plan
    assert seen.scans == []


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("index", "wanted"), FEW)
async def test_runs_without_success_come_in_order_from_an_index_of_their_own(
    see: See, index: str, wanted: RunFilter
) -> None:
    seen = await see(run_list.list_runs, wanted, None, 50)
    assert seen.uses(index), seen.plan
    assert seen.sorts == []


@pytest.mark.parametrize("wanted", [wanted for _, wanted in COMBINED + FEW])
async def test_several_conditions_never_read_the_whole_log(see: See, wanted: RunFilter) -> None:
    seen = await see(run_list.list_runs, wanted, 150_000, 50)
    assert seen.scans == []
    assert seen.took_s < 0.2


@pytest.mark.parametrize("url", ["mariadb"], indirect=True)
@pytest.mark.parametrize(
    "wanted",
    [
        RunFilter(outcome=Outcome.SUCCEEDED),
        RunFilter(trigger_type=TriggerType.CRON),
        RunFilter(executor_address="http://10.0.0.3:9999/"),
    ],
)
async def test_a_later_page_does_not_begin_at_the_newest_run(see: See, wanted: RunFilter) -> None:
    seen = await see(run_list.list_runs, wanted, 50_000, 50)
    assert [line for line in seen.plan if " range of " not in line] == []


@pytest.mark.parametrize("url", ["mariadb"], indirect=True)
async def test_the_newest_failed_runs_of_a_job_are_not_sorted_out_of_two_indexes(see: See) -> None:
    seen = await see(run_list.list_runs, RunFilter(job_id=JobId(78), outcome=Outcome.FAILED), None, 50)
    assert [line for line in seen.plan if "index_merge" in line] == []


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_jobs_last_planned_time_comes_from_the_index_alone(see: See) -> None:
    seen = await see(run_causes.last_planned, JobId(7))
    assert any("COVERING INDEX jobwheel_log_job_planned" in line for line in seen.plan), seen.plan
    assert seen.sorts == []


@pytest.mark.parametrize("url", ["sqlite", "mariadb"], indirect=True)
@pytest.mark.parametrize(
    "wanted",
    [
        RunFilter(job_id=JobId(7), trigger_type=TriggerType.API),
        RunFilter(job_id=JobId(7), trigger_type=TriggerType.API, outcome=Outcome.FAILED, planned_from_ms=LATELY_MS),
        RunFilter(job_id=JobId(7), trigger_type=TriggerType.CRON, planned_from_ms=NOW_MS),
    ],
)
async def test_that_a_job_never_had_a_cause_is_known_from_the_index_alone(see: See, wanted: RunFilter) -> None:
    seen = await see(run_list.list_runs, wanted, None, 50)
    assert seen.rows == []
    (only,) = seen.plan
    assert "jobwheel_log_job_planned" in only
    assert "COVERING INDEX" in only or "Using index" in only, only


@pytest.mark.parametrize(
    "wanted", [RunFilter(), RunFilter(planned_until_ms=NOW_MS - 10**9), RunFilter(job_id=JobId(7))]
)
async def test_a_later_page_costs_no_more(see: See, wanted: RunFilter) -> None:
    seen = await see(run_list.list_runs, wanted, 50_000, 50)
    assert seen.sorts == []
    assert seen.took_s < 0.2
