"""Runs that are retried and jobs that have children, in a store that has nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import select

from jobwheel.admin.domain.alarm import Notice
from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.run import NewRun, Outcome, Shard
from jobwheel.admin.domain.writes import Settlement, TakeOff, Unsent
from jobwheel.admin.store import Connection, run_log, take_off
from jobwheel.admin.store.tables import alarm_outbox, event, job_log
from tests.support.store import ADDRESS, NOW_MS, Store, new_run
from tests.support.store import take_off as off

ENDED_MS = NOW_MS + 900
STEP_MS = 1_000

Row = Mapping[str, Any]


def succeeded(run_id: int, ended_ms: int = ENDED_MS, message: str = "done") -> Settlement:
    return Settlement(RunId(run_id), ended_ms, 200, Outcome.SUCCEEDED, message)


def failed(run_id: int, ended_ms: int = ENDED_MS, message: str = "no such file") -> Settlement:
    return Settlement(RunId(run_id), ended_ms, 500, Outcome.FAILED, message)


def timed_out(run_id: int, ended_ms: int = ENDED_MS) -> Settlement:
    return Settlement(RunId(run_id), ended_ms, 502, Outcome.TIMED_OUT, "too long")


def unsent(run_id: int, outcome: Outcome = Outcome.FAILED, ended_ms: int = ENDED_MS) -> Unsent:
    return Unsent(RunId(run_id), ended_ms, 500, outcome, f"{outcome}\n")


def lost(run_id: int, ended_ms: int = ENDED_MS) -> Unsent:
    return unsent(run_id, Outcome.LOST, ended_ms)


async def send(store: Store, node: NodeId, run_id: int, address: str = ADDRESS) -> None:
    """Let a pending run take off."""
    matched = await store.database.write(run_log.take_off, node, NOW_MS, [off(RunId(run_id), address=address)])
    assert matched == {run_id}


async def runs_of(store: Store, job_id: int) -> list[Row]:
    """All runs of a job, oldest first."""

    def read(connection: Connection) -> list[Row]:
        rows = connection.execute(select(job_log).where(job_log.c.job_id == job_id).order_by(job_log.c.id))
        return [dict(row._mapping) for row in rows]

    return await store.database.read(read)


async def alarms(store: Store) -> list[tuple[int, str]]:
    """The runs in the outbox, and what they are there for: `run.` is for the last of a chain, `attempt.` for others."""

    def read(connection: Connection) -> list[tuple[int, str]]:
        rows = connection.execute(select(alarm_outbox.c.run_id, alarm_outbox.c.message).order_by(alarm_outbox.c.id))
        notices = [(row.run_id, msgspec.json.decode(row.message, type=Notice)) for row in rows]
        return [(run_id, f"{'run' if each.is_final else 'attempt'}.{each.kind}") for run_id, each in notices]

    return await store.database.read(read)


async def events(store: Store) -> list[tuple[str, int]]:
    """Kinds and runs of all events."""

    def read(connection: Connection) -> list[tuple[str, int]]:
        return [(row.kind, row.run_id) for row in connection.execute(select(event).order_by(event.c.id))]

    return await store.database.read(read)


async def broadcast(store: Store, node: NodeId, job_id: JobId, total: int) -> list[RunId]:
    """A broadcast that has taken off: its shards, in order of their index."""
    (first,) = await store.pending(node, job_id=job_id)
    addresses = [f"http://10.0.0.{7 + index}:9999/" for index in range(total)]
    offs = [TakeOff(first.id, each, "settle", "SHARDING_BROADCAST", None) for each in addresses]
    rows = [_shard(node, job_id, first.id, index, total) for index in range(1, total)]
    batch = take_off.Batch([offs[0]], broadcasts=[take_off.Broadcast(first.id, rows, offs[1:])])
    taken = await store.database.write(take_off.take_off, store.zone, node, NOW_MS, batch)
    return [first.id, *(each.id for each in taken.shards[first.id])]


def _shard(node: NodeId, job_id: JobId, first: RunId, index: int, total: int) -> NewRun:
    return msgspec.structs.replace(new_run(node, job_id=job_id), shard=Shard(index, total), broadcast_id=first)


def ids(rows: Sequence[Row]) -> list[int]:
    return [row["id"] for row in rows]
