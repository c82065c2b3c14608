"""An SQLite file with the schema, copied: to make the schema takes longer than most tests do."""

import functools
import tempfile
from pathlib import Path
from typing import Final

import pytest

from jobwheel.admin.store import schema, sqlite_connections
from jobwheel.admin.store.sqlite_connections import open_engine

DURABLE: Final = sqlite_connections._WRITER_PRAGMAS
"""How a file is written that has to survive a power cut."""

FILE_NAME = "jobwheel.db"


def write_unsynced(patch: pytest.MonkeyPatch) -> None:
    """Let this process wait for no disk: what tests write need not survive a power cut, as on the tests' servers."""
    unsynced = tuple(each.replace("synchronous=FULL", "synchronous=OFF") for each in DURABLE)
    patch.setattr(sqlite_connections, "_WRITER_PRAGMAS", unsynced)


def make_sqlite_file(folder: Path) -> None:
    """Put a database that has the schema and nothing else into the folder, unless there is one."""
    path = folder / FILE_NAME
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_schema_file())


@functools.cache
def _schema_file() -> bytes:
    with tempfile.TemporaryDirectory(prefix="jobwheel-schema-") as folder:
        path = Path(folder) / FILE_NAME
        engine = open_engine(path)
        with engine.begin() as connection:
            schema.prepare(connection, "test")
        engine.dispose()
        return path.read_bytes()
