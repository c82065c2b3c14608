"""The schema's steps, run by Alembic. It is large, so `schema` loads this module with a change of the schema alone."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def step_up(connection: Connection, migrations: Path, target: str) -> None:
    """Run the steps up to a version, or to `head`, in the caller's transaction."""
    command.upgrade(_config(connection, migrations), target)


def step_down(connection: Connection, migrations: Path, target: str) -> None:
    """Take back the steps after a version, or all of them (`base`), in the caller's transaction."""
    command.downgrade(_config(connection, migrations), target)


def _config(connection: Connection, migrations: Path) -> Config:
    config = Config()
    config.set_main_option("script_location", str(migrations))
    config.attributes["connection"] = connection
    return config
