"""What the installation keeps about itself, by name."""

from sqlalchemy import Connection, delete, select

from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.tables import setting

ZONE = "time_zone"
ACCESS_TOKEN = "access_token"  # noqa: S105 - the name of the setting
DELETED_JOB_PREFIX = "deleted_job."
"""One row for each deleted job whose run rows are not all removed yet."""


def read_setting(connection: Connection, name: str) -> str | None:
    """The stored value; None if there is none."""
    return connection.execute(select(setting.c.value).where(setting.c.name == name)).scalar()


def write_setting(connection: Connection, name: str, value: str) -> None:
    """Store a value, over an older one if there is one."""
    statements(connection).upsert(connection, setting, {"name": name}, {"value": value})


def delete_setting(connection: Connection, name: str) -> None:
    """Forget a value."""
    connection.execute(delete(setting).where(setting.c.name == name))


def list_settings(connection: Connection, prefix: str) -> list[str]:
    """The names that begin with `prefix`."""
    query = select(setting.c.name).where(setting.c.name.startswith(prefix, autoescape=True)).order_by(setting.c.name)
    return list(connection.execute(query).scalars())
