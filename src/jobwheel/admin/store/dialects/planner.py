"""What a database knows of its tables when it plans a query, and who sees to it."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection

# A column is known once its table was looked at after it came to be, whatever is in it. `to_regclass` finds the tables
# that a statement would find; those that are not there are none.
_UNKNOWN = """
SELECT named.name
FROM unnest($1::text[]) AS named(name)
JOIN pg_class AS relation ON relation.oid = to_regclass(quote_ident(named.name))
JOIN pg_namespace AS space ON space.oid = relation.relnamespace
WHERE pg_relation_size(relation.oid) >= $2
  AND EXISTS (
    SELECT 1 FROM pg_attribute AS part
    WHERE part.attrelid = relation.oid AND part.attnum > 0 AND NOT part.attisdropped
      AND COALESCE(part.attstattarget, -1) <> 0
      AND NOT EXISTS (
        SELECT 1 FROM pg_stats AS known
        WHERE known.schemaname = space.nspname AND known.tablename = relation.relname AND known.attname = part.attname
      )
  )
ORDER BY named.name
"""


class KnowsItsTables:
    """The part of `Statements` for a database that need not be told.

    MySQL and MariaDB look at a table when a tenth of it has changed, and when it is opened without having been looked
    at. On SQLite queries name their index, or there is but one that will do.
    """

    def tables_without_statistics(
        self,
        connection: Connection,  # noqa: ARG002 - the protocol's
        tables: Collection[str],  # noqa: ARG002 - the protocol's
        least_bytes: int,  # noqa: ARG002 - the protocol's
    ) -> Sequence[str]:
        return []

    def take_statistics(self, connection: Connection, table: str) -> None:
        """Nothing is to be done."""


class IsToldOfItsTables:
    """The part of `Statements` for PostgreSQL."""

    def tables_without_statistics(
        self, connection: Connection, tables: Collection[str], least_bytes: int
    ) -> Sequence[str]:
        return list(connection.exec_driver_sql(_UNKNOWN, (sorted(tables), least_bytes)).scalars())

    def take_statistics(self, connection: Connection, table: str) -> None:
        # It looks at a sample of the rows, and holds up neither who reads nor who writes.
        connection.exec_driver_sql(f"ANALYZE {connection.dialect.identifier_preparer.quote(table)}")
