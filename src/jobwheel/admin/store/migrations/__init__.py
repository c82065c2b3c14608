"""Alembic's migrations, one file a step. Run by `jobwheel.admin.store.schema` alone."""
