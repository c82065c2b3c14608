"""What the steps of the schema do, so that one that was broken off can be done again.

MySQL and MariaDB commit each change of the schema at once: there a step finds what it made before it was broken off,
and makes the rest.
"""

from typing import Any, Final

import sqlalchemy as sa
from alembic import op

_MYSQL: Final[dict[str, Any]] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}


def create_table(name: str, *parts: Any, **options: Any) -> None:
    """Make a table, unless it is there."""
    if not sa.inspect(op.get_bind()).has_table(name):
        op.create_table(name, *parts, **options, **_MYSQL)


def add_column(table: str, column: sa.Column[Any]) -> None:
    """Add a column to a table, unless it has one of this name."""
    if column.name not in {each["name"] for each in sa.inspect(op.get_bind()).get_columns(table)}:
        op.add_column(table, column)


def create_index(name: str, table: str, columns: list[str], where: str | None = None) -> None:
    """Make an index, unless it is there: of the rows alone that `where` says, where the database can."""
    if name not in {each["name"] for each in sa.inspect(op.get_bind()).get_indexes(table)}:
        of_these: dict[str, Any] = (
            {} if where is None else {"sqlite_where": sa.text(where), "postgresql_where": sa.text(where)}
        )
        op.create_index(name, table, columns, unique=False, **of_these)
