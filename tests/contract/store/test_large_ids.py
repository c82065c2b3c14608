"""Ids of runs grow beyond 32 bits: at thousands a second within days."""

from datetime import datetime

from sqlalchemy import delete, insert

from jobwheel.admin.domain.ids import NodeId, RunId
from jobwheel.admin.store import run_counts, runs
from jobwheel.admin.store.tables import job_log
from tests.support.store import NOW_MS, Store

_AN_HOUR_AGO = datetime(2026, 11, 27, 9, 30)  # noqa: DTZ001 - wall time of the installation


async def test_ids_beyond_those_of_32_bits(server_store: Store) -> None:
    large = 2**31 + 7
    columns = {"id": large, "job_group": 1, "job_id": 1, "trigger_time": _AN_HOUR_AGO, "phase": "pending", "owner": 5}
    times = dict.fromkeys(("planned_ms", "due_ms", "triggered_ms"), NOW_MS)
    row = {**columns, **times, "trigger_type": "CRON"}
    await server_store.database.write(lambda c: c.execute(insert(job_log).values(row)))
    found = await server_store.database.read(run_counts.count_among, [RunId(large)])
    assert found.slices[_AN_HOUR_AGO].open_ids == [large]
    pending = await server_store.database.read(runs.load_pending, NodeId(5), [RunId(large)])
    assert [each.id for each in pending] == [large]
    await server_store.database.write(lambda c: c.execute(delete(job_log)))
