"""On 200,000 runs no query of the engine, and no first page of the run list, reads its way through the log."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import datetime

import pytest

from jobwheel.admin.domain.ids import GroupId, JobId, NodeId, RunId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import Outcome, Phase, TriggerType
from jobwheel.admin.domain.writes import Accepted, Settlement
from jobwheel.admin.store import (
    Connection,
    claims,
    held_jobs,
    limits,
    nodes,
    pause_windows,
    run_list,
    run_log,
    runs,
    schema,
)
from jobwheel.admin.store.database import open_database
from jobwheel.admin.store.dialects.sqlite import _RESCHEDULE_FIX_DELAY
from jobwheel.admin.store.run_list import RunFilter
from jobwheel.admin.store.tables import job_info
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import SystemClock
from tests.support.plans import Seen, SeenError, analyze, insert_many, look
from tests.support.run_servers import Servers
from tests.support.servers import SERVER_KINDS
from tests.support.store import JOB_COLUMNS, KINDS, NOW_MS, ZONE, sqlite_url, take_off

See = Callable[..., Awaitable[Seen]]

# The first test of a kind fills its database.
pytestmark = pytest.mark.timeout(60)

RUNS = 200_000
JOBS = 2_000
NODE = NodeId(3)
_AT = datetime(2026, 11, 27, 10, 30)  # noqa: DTZ001 - wall time of the installation

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
            check_ms = NOW_MS if phase == "unconfirmed" else None
        else:
            outcome = "succeeded"
        if n % 5_000 == 77 and phase is None:
            outcome, codes = "failed", (500, 0)
        if n % 20_000 == 78:
            cause = "MANUAL"
        if n == 4_711:
            address = "http://rare:9999/"
        yield (1 + n % 5, 1 + n % JOBS, address, _AT, *codes, at_ms, at_ms, at_ms, cause, phase,
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


ENGINE_QUERIES: list[tuple[str, Callable[..., object], tuple[object, ...]]] = [
    ("jobwheel_info_due", claims.due_jobs, (NOW_MS, 1000)),
    ("jobwheel_pause_window_job", pause_windows.read_windows, ([JobId(7), JobId(8)], NOW_MS)),
    ("jobwheel_log_owner", runs.has_ownerless, (NOW_MS,)),
    ("jobwheel_log_owner", runs.adopt_ownerless, (NODE, NOW_MS, 100)),
    ("jobwheel_log_owner", runs.release_pending, (NODE,)),
    ("jobwheel_log_owner", runs.count_own_due, (NODE, NOW_MS, 10_000)),
    ("jobwheel_log_owner", run_log.sending_since, (NODE, NOW_MS, 200)),
    ("jobwheel_log_check", run_log.due_unconfirmed, (NOW_MS, 200)),
    ("jobwheel_log_owner", nodes.adopt_all, (NodeId(9), NOW_MS, 60_000)),
    ("jobwheel_info_limit", held_jobs.hold_jobs_of, ([RunId(7)],)),
    ("jobwheel_info_due", held_jobs.hold_jobs_of, ([RunId(7)],)),
    ("jobwheel_log_owner", limits.jobs_with_waiting, ()),
    ("jobwheel_log_open", limits.call_waiting, (NODE, {JobId(7): 3})),
    ("jobwheel_log_open", runs.has_open_runs, (JobId(7),)),
    ("jobwheel_log_open", runs.remove_planned, (JobId(7), NOW_MS - 10**9)),
    ("jobwheel_log_open", runs.remove_pending, (JobId(7),)),
    ("jobwheel_log_job_planned", run_list.last_planned, (JobId(7),)),
    ("i_job_id", run_list.delete_runs_of_job, (JobId(7), 200)),
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


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_fix_delay_looks_for_open_runs_alone(see: See) -> None:
    seen = await see(lambda c: c.exec_driver_sql(_RESCHEDULE_FIX_DELAY, (NOW_MS, 7, NOW_MS)))
    assert seen.uses("jobwheel_log_open"), seen.plan
    assert seen.scans == []


def _writes(connection: Connection) -> None:
    """A batch of the run log's writer, with the last run of a FIX_DELAY job among its runs, and a claim's batch."""
    ids = [RunId(run_id) for run_id in range(RUNS - 1000, RUNS)]
    waiting = {"schedule_type": "FIX_DELAY", "schedule_conf": "7", "trigger_next_time": AWAITING_SETTLEMENT_MS}
    connection.execute(job_info.update().where(job_info.c.id == 7).values(waiting))
    run_log.take_off(connection, NODE, NOW_MS, [take_off(run_id) for run_id in ids])
    answers = [Accepted(run_id, NOW_MS, None, "accepted") for run_id in ids]
    results = [Settlement(run_id, NOW_MS, 200, Outcome.SUCCEEDED, "") for run_id in ids]
    run_log.apply(connection, InstallationZone(ZONE), NODE, [*answers, *results])
    claims.move_on(connection, [(JobId(job_id), NOW_MS, NOW_MS, NOW_MS + 1, True) for job_id in range(1, 500)])


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
    seen = await see(run_list.last_planned, JobId(7))
    assert any("COVERING INDEX jobwheel_log_job_planned" in line for line in seen.plan), seen.plan
    assert seen.sorts == []


@pytest.mark.parametrize(
    "wanted", [RunFilter(), RunFilter(planned_until_ms=NOW_MS - 10**9), RunFilter(job_id=JobId(7))]
)
async def test_a_later_page_costs_no_more(see: See, wanted: RunFilter) -> None:
    seen = await see(run_list.list_runs, wanted, 50_000, 50)
    assert seen.sorts == []
    assert seen.took_s < 0.2
