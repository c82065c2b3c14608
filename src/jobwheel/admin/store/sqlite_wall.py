"""Wall times in SQLite, where they are texts."""

from collections.abc import Callable
from typing import Any

from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Dialect


class SqliteWall(sqlite.DATETIME):
    """What is no time reads as none: one row that somebody wrote by hand must not hide a whole list."""

    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        process = super().result_processor(dialect, coltype)
        assert process is not None

        def read(value: Any) -> Any:
            try:
                return process(value)
            except (TypeError, ValueError):
                return None

        return read
