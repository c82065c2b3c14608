"""How much disk the run log and its indexes take."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import text

from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database

_INDEXES: Final = {
    "sqlite": "SELECT name, SUM(pgsize) FROM dbstat WHERE name IN "
    "(SELECT name FROM sqlite_master WHERE tbl_name = 'xxl_job_log') GROUP BY name",
    "postgresql": "SELECT relname, pg_relation_size(oid) FROM pg_class "
    "WHERE relname = 'xxl_job_log' OR oid IN (SELECT indexrelid FROM pg_index JOIN pg_class AS log "
    "ON log.oid = indrelid WHERE log.relname = 'xxl_job_log')",
    "mysql": "SELECT index_name, stat_value * @@innodb_page_size FROM mysql.innodb_index_stats "
    "WHERE database_name = DATABASE() AND table_name = 'xxl_job_log' AND stat_name = 'size'",
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """MiB of the whole database on disk, and bytes per run of the log's table and of each of its indexes."""

    disk_mib: float
    bytes_per_run: Mapping[str, float]


async def sizes(database: Database, folder: Path) -> Sizes:
    """Look at the disk, and ask the database."""
    return Sizes(_used_mib(folder), await database.read(_bytes_per_run))


def _used_mib(folder: Path) -> float:
    used = sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
    return round(used / (1 << 20), 1)


def _bytes_per_run(connection: Connection) -> dict[str, float]:
    rows = connection.execute(text("SELECT COUNT(*) FROM xxl_job_log")).scalar_one()
    found = connection.execute(text(_INDEXES[connection.dialect.name])).all()
    return {name: round(float(size) / rows, 1) for name, size in sorted(found)}
