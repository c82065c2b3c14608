"""What SQLite and PostgreSQL say in the same words: a row that is there is changed instead."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, Table


class OnConflict:
    """The part of `Statements` that both share; `insert_into` is the dialect's own insert."""

    has_partial_indexes = True

    insert_into: Callable[[Table], Any]

    def without_index(self, query: Select[Any], table: Table, index: str) -> Select[Any]:  # noqa: ARG002 - the protocol's
        return query

    def upsert(
        self, connection: Connection, table: Table, key: Mapping[str, object], values: Mapping[str, object]
    ) -> None:
        statement = self.insert_into(table).values({**key, **values})
        connection.execute(statement.on_conflict_do_update(index_elements=list(key), set_=dict(values)))

    def upsert_all(
        self, connection: Connection, table: Table, key: Sequence[str], rows: Sequence[Mapping[str, object]]
    ) -> None:
        if rows:
            statement = self.insert_into(table)
            values = {name: statement.excluded[name] for name in rows[0] if name not in key}
            connection.execute(statement.on_conflict_do_update(index_elements=list(key), set_=values), rows)
