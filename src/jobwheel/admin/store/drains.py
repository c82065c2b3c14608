"""Which addresses are being drained: in the settings of their group, which nothing but a person's wish changes."""

import json
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, select, update

from jobwheel.admin.domain.drain import Drain, is_drained
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.store.tables import job_group
from jobwheel.wire.messages import RegistryRequest

_KEY: Final = "drains"


class _Settings(msgspec.Struct):
    """What is read here of the column `settings`."""

    drains: tuple[Drain, ...] = ()


def read_drains(settings: str | None) -> tuple[Drain, ...]:
    """The drains in a group's column `settings`."""
    if not settings:
        return ()
    try:
        return msgspec.json.decode(settings, type=_Settings).drains
    except msgspec.DecodeError:
        # Not as `write_drains` writes it. Runs go on.
        return ()


def write_drains(connection: Connection, group_id: GroupId, drains: tuple[Drain, ...]) -> None:
    """Replace the drains of a group whose row is locked; its other settings stay."""
    row = job_group.c.id == group_id
    text = connection.execute(select(job_group.c.settings).where(row)).scalar()
    settings = {**_as_object(text), _KEY: msgspec.to_builtins(drains)}
    connection.execute(update(job_group).where(row).values(settings=json.dumps(settings, ensure_ascii=False)))


def is_draining(connection: Connection, request: RegistryRequest) -> bool:
    """Whether the process that beats is to get no new runs."""
    instance_id = request.features.instance if request.features else None
    query = select(job_group.c.settings).where(job_group.c.app_name == request.registry_key)
    return any(
        is_drained(read_drains(settings), request.registry_value, instance_id)
        for settings in connection.execute(query).scalars()
    )


def _as_object(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
