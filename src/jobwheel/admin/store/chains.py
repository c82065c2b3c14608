"""Runs that come of each other: the tries of a chain, the shards of a broadcast, parents and children."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from jobwheel.admin.domain.ids import JobId, RunId
from jobwheel.admin.domain.retries import EndedRun, Try
from jobwheel.admin.domain.run import Outcome, Shard
from jobwheel.admin.domain.writes import Ended
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.dialects.base import PRIMARY_KEY
from jobwheel.admin.store.tables import job_log
from jobwheel.admin.store.zone import InstallationZone

MOST_GENERATIONS = 100
"""How far a run may be from the first of its forefathers; a run of another make of admin knows none."""

FIRST = "jobwheel_log_first"
PARENT = "jobwheel_log_parent"
BROADCAST = "jobwheel_log_broadcast"

_ENDED_COLUMNS = (
    job_log.c.id,
    job_log.c.planned_ms,
    job_log.c.trigger_time,
    job_log.c.attempt,
    job_log.c.first_run_id,
    job_log.c.parent_run_id,
    job_log.c.executor_fail_retry_count,
    job_log.c.trigger_type,
    job_log.c.executor_param,
    job_log.c.named_addresses,
    job_log.c.executor_sharding_param,
    job_log.c.broadcast_id,
    job_log.c.executor_address,
    job_log.c.handle_code,
)


def load_ended(connection: Connection, zone: InstallationZone, ended: Mapping[RunId, Ended]) -> list[EndedRun]:
    """These runs with what their retries and children take from them, in the order of their ids."""
    rows = _by_id(connection, select(*_ENDED_COLUMNS).order_by(job_log.c.id), ended)
    return [_ended_run(zone, row, ended[RunId(row.id)]) for row in rows]


def read_results(connection: Connection, run_ids: Collection[RunId]) -> dict[RunId, str | None]:
    """The messages of these runs' results, of those that are there."""
    rows = _by_id(connection, select(job_log.c.id, job_log.c.handle_msg), run_ids)
    return {RunId(row.id): row.handle_msg for row in rows}


def lost_among(connection: Connection, run_ids: Sequence[RunId]) -> set[RunId]:
    """Those of the runs that are lost so far."""
    if not run_ids:
        return set()
    rows = _by_id(connection, select(job_log.c.id).where(job_log.c.outcome == Outcome.LOST), run_ids)
    return {RunId(row.id) for row in rows}


def load_tries(connection: Connection, runs: Iterable[EndedRun]) -> Mapping[RunId, Sequence[Try]]:
    """The tries that the runs' chains have, by the chains' first runs."""
    runs = list(runs)
    chains = {run.chain_id for run in runs}
    columns = select(job_log.c.id, job_log.c.first_run_id, job_log.c.attempt, job_log.c.outcome)
    later = _by(connection, columns, FIRST, chains)
    # A first run that ended just now is among the runs itself.
    earlier = _by_id(connection, columns, chains - {run.id for run in runs})
    tries = defaultdict[RunId, list[Try]](list)
    for row in [*later, *earlier]:
        outcome = Outcome(row.outcome) if row.outcome in set(Outcome) else None
        tries[RunId(row.first_run_id or row.id)].append(Try(row.attempt, outcome))
    return tries


def complete_broadcasts(connection: Connection, broadcast_ids: Collection[RunId]) -> set[RunId]:
    """Those of which every shard's chain has a run that succeeded."""
    done = defaultdict[RunId, set[int]](set)
    totals: dict[RunId, int] = {}
    columns = select(job_log.c.broadcast_id, job_log.c.executor_sharding_param).where(
        job_log.c.outcome == Outcome.SUCCEEDED
    )
    for row in _by(connection, columns, BROADCAST, broadcast_ids):
        shard = Shard.parse(row.executor_sharding_param)
        if shard is not None:
            done[RunId(row.broadcast_id)].add(shard.index)
            totals[RunId(row.broadcast_id)] = shard.total
    return {each for each, indexes in done.items() if len(indexes) == totals[each]}


def broadcasts_going_on(connection: Connection, run_ids: Collection[RunId]) -> set[RunId]:
    """Of the broadcasts that these runs are of, those of which a run is not done."""
    broadcasts = select(job_log.c.broadcast_id)
    theirs = _by_id(connection, broadcasts.where(job_log.c.broadcast_id.is_not(None)), run_ids)
    is_open = broadcasts.where(job_log.c.phase.is_not(None)).distinct()
    return {
        RunId(row.broadcast_id) for row in _by(connection, is_open, BROADCAST, {row.broadcast_id for row in theirs})
    }


def have_children(connection: Connection, runs: Collection[EndedRun]) -> set[RunId]:
    """Those of the runs of which a child was made, or of another try of theirs, or of another shard."""
    relatives = _relatives(connection, runs)
    everybody = {each for ids in relatives.values() for each in ids}
    parents = {row.parent_run_id for row in _by(connection, select(job_log.c.parent_run_id), PARENT, everybody)}
    return {run.id for run in runs if not parents.isdisjoint(relatives[run.id])}


def _relatives(connection: Connection, runs: Collection[EndedRun]) -> Mapping[RunId, set[int]]:
    """The runs of the same chain and of the same broadcast, by each run; itself among them."""
    chains, broadcasts = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
    for row in _by(connection, select(job_log.c.id, job_log.c.first_run_id), FIRST, {run.chain_id for run in runs}):
        chains[row.first_run_id].add(row.id)
    wanted = {run.broadcast_id for run in runs if run.broadcast_id is not None}
    for row in _by(connection, select(job_log.c.id, job_log.c.broadcast_id), BROADCAST, wanted):
        broadcasts[row.broadcast_id].add(row.id)
    return {
        run.id: {run.id, run.chain_id, *chains[run.chain_id], *broadcasts.get(run.broadcast_id or 0, ())}
        for run in runs
    }


def forefathers(connection: Connection, runs: Collection[EndedRun]) -> dict[RunId, set[JobId] | None]:
    """The jobs of the runs that each run comes of, its own among them; None if these are too many to be looked at."""
    jobs: dict[RunId, set[JobId] | None] = {run.id: {run.job_id} for run in runs}
    above = {run.id: run.parent_run_id for run in runs if run.parent_run_id is not None}
    for _ in range(MOST_GENERATIONS):
        if not above:
            return jobs
        columns = select(job_log.c.id, job_log.c.job_id, job_log.c.parent_run_id)
        rows = {row.id: row for row in _by_id(connection, columns, set(above.values()))}
        climbed = {}
        for run_id, parent_id in above.items():
            parent, found = rows.get(parent_id), jobs[run_id]
            if parent is not None and found is not None:
                found.add(JobId(parent.job_id))
                if parent.parent_run_id is not None:
                    climbed[run_id] = RunId(parent.parent_run_id)
        above = climbed
    return {**jobs, **dict.fromkeys(above)}


def _by_id(connection: Connection, query: Select[Any], run_ids: Collection[int]) -> Sequence[Row[Any]]:
    if not run_ids:
        return ()
    chosen = query.where(job_log.c.id.in_(sorted(run_ids)))
    return connection.execute(statements(connection).by_index(chosen, job_log, PRIMARY_KEY)).all()


def _by(connection: Connection, query: Select[Any], index: str, values: Collection[int]) -> Sequence[Row[Any]]:
    """Runs whose column of the index has one of the values."""
    if not values:
        return ()
    columns = {FIRST: job_log.c.first_run_id, PARENT: job_log.c.parent_run_id, BROADCAST: job_log.c.broadcast_id}
    column = columns[index]
    # In words of the partial index, too.
    chosen = query.where(column.in_(sorted(values)), column.is_not(None))
    return connection.execute(statements(connection).by_index(chosen, job_log, index)).all()


def _ended_run(zone: InstallationZone, row: Row[Any], ended: Ended) -> EndedRun:
    planned_ms = row.planned_ms
    if planned_ms is None:
        planned_ms = ended.ended_ms if row.trigger_time is None else zone.from_wall(row.trigger_time)
    return EndedRun(
        id=ended.run_id,
        job_id=ended.job_id,
        outcome=ended.outcome,
        ended_ms=ended.ended_ms,
        planned_ms=planned_ms,
        attempt=row.attempt,
        first_run_id=None if row.first_run_id is None else RunId(row.first_run_id),
        parent_run_id=None if row.parent_run_id is None else RunId(row.parent_run_id),
        retries_stored=row.executor_fail_retry_count,
        is_foreign=row.trigger_type is None,
        parameter=row.executor_param or "",
        named_addresses=tuple(row.named_addresses.split(",")) if row.named_addresses else (),
        shard=Shard.parse(row.executor_sharding_param),
        broadcast_id=None if row.broadcast_id is None else RunId(row.broadcast_id),
        address=row.executor_address or "",
        has_result=row.handle_code != 0,
    )
