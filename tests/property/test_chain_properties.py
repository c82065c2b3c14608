"""Whatever is reported of a chain of retries in whatever order: never more than n + 1 runs, never a child twice."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, insert, select

from jobwheel.admin.domain.ids import GroupId, JobId, NodeId, RunId
from jobwheel.admin.domain.policies import RetryBackoff
from jobwheel.admin.domain.retries import MOST_RETRY_WAIT_S, RetryPolicy
from jobwheel.admin.store import run_log, runs, schema
from jobwheel.admin.store.sqlite_connections import open_engine
from jobwheel.admin.store.tables import job_info, job_log
from jobwheel.admin.store.zone import InstallationZone
from tests.support.followups import failed, lost, succeeded, timed_out
from tests.support.store import JOB_COLUMNS, NOW_MS, ZONE, new_run, take_off

ME = NodeId(1)
_WRITES = st.sampled_from([succeeded, failed, timed_out, lost])
# Which run of the chain, as many as there are then, and what is written of it.
_STEP = st.tuples(st.integers(0, 5), _WRITES)
_BATCHES = st.lists(st.lists(_STEP, min_size=1, max_size=4), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    opened = open_engine(tmp_path_factory.mktemp("chains") / "jobwheel.db")
    with opened.begin() as connection:
        schema.prepare(connection, "test")
    with opened.connect() as connection:
        # A test loses nothing in a power cut.
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("PRAGMA synchronous=OFF")
    yield opened
    opened.dispose()


def make_job(connection: Connection, **columns: object) -> JobId:
    key = connection.execute(insert(job_info).values({**JOB_COLUMNS, **columns})).inserted_primary_key
    assert key is not None
    return JobId(key[0])


def rows_of(connection: Connection, job_id: int) -> list[Any]:
    query = select(job_log).where(job_log.c.job_id == job_id).order_by(job_log.c.id)
    return list(connection.execute(query))


def play(connection: Connection, retries: int, batches: list[list[tuple[int, Any]]]) -> None:
    child = make_job(connection)
    parent = make_job(connection, child_jobid=str(child), executor_fail_retry_count=retries)
    zone = InstallationZone(ZONE)
    runs.insert_runs(connection, zone, [new_run(ME, job_id=parent)])
    for batch in batches:
        chain = rows_of(connection, parent)
        run_log.take_off(connection, ME, NOW_MS, [take_off(RunId(row.id)) for row in chain if row.phase == "pending"])
        writes = [write(chain[at % len(chain)].id) for at, write in batch]
        run_log.apply(connection, zone, ME, writes)
        chain, children = rows_of(connection, parent), rows_of(connection, child)
        has_succeeded = any(row.outcome == "succeeded" for row in chain)
        assert [row.attempt for row in chain] == list(range(1, len(chain) + 1))
        assert len(chain) <= retries + 1
        assert len(children) == int(has_succeeded)
        assert {row.parent_run_id for row in children} <= {row.id for row in chain}
        # What ended without success was tried again, if it might be.
        last = chain[-1]
        assert has_succeeded or last.outcome is None or len(chain) == retries + 1


@given(st.integers(0, 3), _BATCHES)
@settings(max_examples=25, deadline=None)
def test_any_order_of_results(engine: Engine, retries: int, batches: list[list[tuple[int, Any]]]) -> None:
    with engine.connect() as connection, connection.begin() as transaction:
        play(connection, retries, batches)
        transaction.rollback()


@given(
    st.integers(-1, 10**7),
    st.sampled_from([None, "FIXED", "DOUBLING", "?"]),
    st.none() | st.integers(0, 10**7),
    st.integers(1, 10**6),
)
def test_a_retry_never_waits_longer_than_the_bound_nor_shorter_than_before(
    interval_s: int, backoff: str | None, most_s: int | None, attempt: int
) -> None:
    policy = RetryPolicy(GroupId(1), 3, interval_s, backoff, most_s)
    wait_s, next_s = policy.wait_s(attempt), policy.wait_s(attempt + 1)
    assert 0 <= wait_s <= next_s <= MOST_RETRY_WAIT_S
    assert wait_s >= min(max(0, interval_s), MOST_RETRY_WAIT_S)
    if backoff != RetryBackoff.DOUBLING:
        assert wait_s == next_s
