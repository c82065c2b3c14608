"""A log of millions of runs, made quickly on whatever database: what `benchmarks.rows` looks at.

60 days of 2,000 jobs in 20 groups. 98 of 100 runs succeeded. One job owns four tenths of the runs, another one is only
started through the API; one stopped running after the first day and is alone in its group; one group has no job. The
newest runs are open. Every row follows from its number, so that all databases hold the same.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import insert, inspect, text
from sqlalchemy.ext.asyncio import create_async_engine

from jobwheel.admin.domain.ids import GroupId, JobId, NodeId
from jobwheel.admin.store import Connection, schema
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.tables import job_group, job_info, job_log, node
from tests.support.plans import analyze
from tests.support.store import JOB_COLUMNS, NOW_MS

JOBS: Final = 2_000
GROUPS: Final = 20
DAY_MS: Final = 86_400_000
SPAN_MS: Final = 60 * DAY_MS
BIG_JOB, SMALL_JOB, API_JOB, OLD_JOB = JobId(1), JobId(7), JobId(3), JobId(JOBS)
BIG_GROUP, SMALL_GROUP, OLD_GROUP, EMPTY_GROUP = GroupId(2), GroupId(9), GroupId(19), GroupId(20)
NODE, DEAD_NODE = NodeId(3), NodeId(2)
ADDRESS, OLD_ADDRESS = "http://10.0.2.3:9999/", "http://10.0.99.9:9999/"

_AT_ONCE: Final = 250_000
_DUE_JOBS: Final = 200
_HEADING: Final = (
    "type: CRON\nnode: 3\nregistration: registered\naddresses: http://10.0.2.1:9999/, http://10.0.2.2:9999/\n"
    "route strategy: ROUND\nblock strategy: SERIAL_EXECUTION\ntime-out: none\nattempt: 1\n"
    "http://10.0.2.1:9999/ accepted (code 200)\n"
)
_ERROR: Final = "ValueError: no such account\n" + 'File "settle.py", line 7, in settle\n' * 6

# What the rows are made of: two numbers without a pattern for each row, then its job, its state, its columns.
_NUMBERS: Final = """
SELECT n, (n * 7919) % 100003 AS h, (n * 104729) % 99991 AS g, {began_ms} + n * {span_ms} / {rows} AS at_ms
FROM {numbers}
"""
_JOBS: Final = """
SELECT n, h, g, {whole_second} AS planned_ms,
       CASE WHEN n * 60 <= {rows} AND h % 50 = 0 THEN 2000 WHEN h % 100 < 40 THEN 1 WHEN h % 100 < 44 THEN 3
            ELSE 4 + g % 1996 END AS job_id,
       CASE WHEN n > {rows} - {rows} / 1000 THEN 'open' WHEN g % 1000 < 14 THEN 'failed'
            WHEN g % 1000 < 17 THEN 'timed_out' WHEN g % 1000 = 17 THEN 'lost' WHEN g % 1000 < 20 THEN 'unsent'
            ELSE 'succeeded' END AS state
FROM ({numbered}) AS numbered
"""
_COLUMNS: Final[dict[str, str]] = {
    "job_group": "CASE WHEN job_id = 2000 THEN 19 ELSE 1 + job_id % 18 END",
    "job_id": "job_id",
    "executor_address": "CASE WHEN state = 'open' AND n % 8 < 5 THEN NULL "
    "WHEN n * 60 <= {rows} AND h % 50 = 1 THEN '{old_address}' ELSE {address} END",
    "executor_handler": "'settle_accounts'",
    "executor_param": "'account=4711&day=2026-11-27'",
    "trigger_time": "{wall_time}",
    "trigger_code": "CASE state WHEN 'open' THEN 0 WHEN 'unsent' THEN 500 ELSE 200 END",
    "trigger_msg": "'{heading}'",
    "handle_time": "CASE WHEN state IN ('open', 'unsent') THEN NULL ELSE {wall_time} END",
    "handle_code": "CASE state WHEN 'open' THEN 0 WHEN 'unsent' THEN 0 WHEN 'succeeded' THEN 200 "
    "WHEN 'timed_out' THEN 502 ELSE 500 END",
    "handle_msg": "CASE state WHEN 'open' THEN NULL WHEN 'succeeded' THEN '' ELSE '{error}' END",
    "alarm_status": "CASE WHEN state IN ('open', 'succeeded') OR h % 250 = 9 THEN 0 ELSE 1 END",
    "planned_ms": "planned_ms",
    "due_ms": "planned_ms",
    "triggered_ms": "planned_ms - 4000",
    "sent_ms": "CASE WHEN state = 'open' AND n % 8 < 4 THEN NULL ELSE planned_ms + 3 END",
    "accepted_ms": "CASE WHEN state IN ('open', 'unsent') THEN NULL ELSE planned_ms + 8 END",
    "ended_ms": "CASE WHEN state = 'open' THEN NULL ELSE planned_ms + 1500 END",
    "check_ms": "CASE WHEN state = 'open' AND n % 8 = 5 THEN planned_ms + 5000 END",
    "unheard_ms": "CASE WHEN state = 'open' AND n % 8 = 5 THEN planned_ms END",
    "trigger_type": "CASE WHEN job_id = 3 THEN 'API' WHEN (h + g) % 1000 = 7 THEN 'MANUAL' WHEN (h + g) % 500 = 8 "
    "THEN 'RETRY' ELSE 'CRON' END",
    "phase": "CASE WHEN state <> 'open' THEN NULL WHEN n % 8 < 4 THEN 'pending' WHEN n % 8 = 4 THEN 'sending' "
    "WHEN n % 8 = 5 THEN 'unconfirmed' ELSE 'accepted' END",
    "outcome": "CASE state WHEN 'open' THEN NULL WHEN 'unsent' THEN 'failed' ELSE state END",
    "owner": "CASE WHEN state <> 'open' THEN NULL WHEN n % 8 IN (0, 1, 4) THEN 3 WHEN n % 8 = 2 THEN 2 END",
    "route": "'ROUND'",
}
_NUMBER_ROWS: Final = {
    "sqlite": "(WITH RECURSIVE number (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM number WHERE n < {last}) "
    "SELECT n FROM number) AS numbers",
    "postgresql": "generate_series(CAST({first} AS BIGINT), {last}) AS numbers (n)",
    "mysql": "(SELECT CAST(seq AS SIGNED) AS n FROM seq_{first}_to_{last}) AS numbers",
}
_WHOLE_SECOND: Final = {"mysql": "CAST(FLOOR(at_ms / 1000) * 1000 AS SIGNED)"}
_WALL_TIME: Final = {
    "sqlite": "datetime(planned_ms / 1000, 'unixepoch', '+8 hours')",
    "postgresql": "to_timestamp(planned_ms / 1000) AT TIME ZONE 'Asia/Shanghai'",
    "mysql": "TIMESTAMPADD(SECOND, planned_ms / 1000, '1970-01-01 08:00:00')",
}
_DEFINITIONS: Final = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL",
    "postgresql": "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = $1 AND indexdef NOT LIKE '% UNIQUE %'",
}
_ADDRESS_PARTS: Final = ("'http://10.0.'", "(1 + job_id % 18)", "'.'", "(1 + h % 5)", "'\\:9999/'")


async def fill(database: Database, rows: int) -> None:
    """Make the schema and its rows."""
    await database.write(schema.prepare, "the benchmark's database")
    await database.write(_fill_small_tables)
    await fill_log(database, rows, rows)


async def fill_ended(database: Database, rows: int) -> None:
    """The log alone, in a schema that is there, without the newest thousandth: those runs are open."""
    await fill_log(database, rows, rows - rows // 1000 - 1)


async def fill_log(database: Database, rows: int, most: int) -> None:
    """Write the oldest `most` runs of a log that would have `rows` in all.

    The log's indexes come last, which is quicker than keeping them up.
    """
    make_indexes = await database.write(take_indexes)
    for first, last in slices(most):
        await database.write(insert_rows, rows, first, last)
    # Among millions one may take longer than a server may take for a transaction.
    for make in make_indexes:
        await database.write_patiently(make)


def take_indexes(connection: Connection) -> Sequence[Callable[[Connection], object]]:
    """Remove the log's indexes; what is returned makes them anew, as they were there."""
    if connection.dialect.name == "mysql":
        # All in one reading of the table: one by one takes four times as long.
        names = [(str(each["name"]), each["column_names"]) for each in inspect(connection).get_indexes(job_log.name)]
        added = ", ".join(f"ADD INDEX {name} ({', '.join(map(str, columns))})" for name, columns in names)
        removed = ", ".join(f"DROP INDEX {name}" for name, _ in names)
        connection.exec_driver_sql(f"ALTER TABLE {job_log.name} {removed}")
        return [partial(_run, f"ALTER TABLE {job_log.name} {added}")]
    # What `tables.py` says alone is not the whole of it: without the words of the steps PostgreSQL's hold every row.
    definitions = connection.exec_driver_sql(_DEFINITIONS[connection.dialect.name], (job_log.name,)).all()
    for name, _ in definitions:
        connection.exec_driver_sql(f"DROP INDEX {name}")
    return [partial(_run, definition) for _, definition in sorted(definitions)]


def _run(statement: str, connection: Connection) -> None:
    connection.exec_driver_sql(statement)


async def settle_down(database: Database, url: str) -> None:
    """What servers do by themselves, sooner or later: until then PostgreSQL looks at each row that an index names."""
    if not url.startswith("postgresql:"):
        await database.write_patiently(analyze)
        return
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:", 1), isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        await connection.execute(text("VACUUM ANALYZE xxl_job_log"))
        # And what it would write in the middle of the measurement.
        await connection.execute(text("CHECKPOINT"))
    await engine.dispose()


def slices(rows: int) -> Iterator[tuple[int, int]]:
    """The numbers of the rows that go in one transaction, the first and the last."""
    for first in range(1, rows + 1, _AT_ONCE):
        yield first, min(rows, first + _AT_ONCE - 1)


def insert_rows(connection: Connection, rows: int, first: int, last: int) -> None:
    """Write the rows `first` to `last` of a log that has `rows` in all."""
    kind = connection.dialect.name
    numbers = _NUMBER_ROWS[kind].format(first=first, last=last)
    began_ms = NOW_MS - SPAN_MS
    numbered = _NUMBERS.format(numbers=numbers, began_ms=began_ms, span_ms=SPAN_MS, rows=rows)
    whole_second = _WHOLE_SECOND.get(kind, "at_ms - at_ms % 1000")
    source = _JOBS.format(numbered=numbered, whole_second=whole_second, rows=rows)
    values = ", ".join(_COLUMNS.values()).format(
        rows=rows,
        old_address=OLD_ADDRESS.replace(":9999", "\\:9999"),
        address=_joined(kind, _ADDRESS_PARTS),
        wall_time=_WALL_TIME[kind],
        heading=_HEADING.replace(":", "\\:"),
        error=_ERROR.replace(":", "\\:"),
    )
    names = ", ".join(_COLUMNS)
    connection.execute(text(f"INSERT INTO xxl_job_log ({names}) SELECT {values} FROM ({source}) AS made ORDER BY n"))


def _fill_small_tables(connection: Connection) -> None:
    groups = [{"id": n, "app_name": f"app-{n}", "title": f"Application {n}"} for n in range(1, GROUPS + 1)]
    connection.execute(insert(job_group), groups)
    connection.execute(insert(job_info), [_job(n) for n in range(1, JOBS + 1)])
    facts = {"host": "host-1", "process_id": 7, "version": "1.0.0", "started_ms": NOW_MS}
    beats = [{"id": DEAD_NODE, "heartbeat_ms": NOW_MS - DAY_MS}, {"id": NODE, "heartbeat_ms": NOW_MS}]
    connection.execute(insert(node), [{**facts, **each} for each in beats])


def _job(number: int) -> dict[str, Any]:
    next_ms = NOW_MS if number <= _DUE_JOBS else NOW_MS + 60_000 * number
    group = OLD_GROUP if number == OLD_JOB else 1 + number % 18
    name = f"settle the accounts of region {number}"
    return {**JOB_COLUMNS, "id": number, "job_group": group, "job_desc": name, "trigger_next_time": next_ms}


def _joined(kind: str, parts: tuple[str, ...]) -> str:
    return f"CONCAT({', '.join(parts)})" if kind != "sqlite" else " || ".join(parts)
