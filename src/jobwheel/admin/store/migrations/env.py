"""Runs the migrations on the connection and in the transaction of the caller."""

from alembic import context

from jobwheel.admin.store.tables import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=False,
)
context.run_migrations()
