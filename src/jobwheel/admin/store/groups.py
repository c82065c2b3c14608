"""Groups of executors."""

from collections.abc import Collection

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from jobwheel.admin.domain.group import AddressType, Group, Registration
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.drains import read_drains
from jobwheel.admin.store.group_tokens import read_tokens
from jobwheel.admin.store.registry import EXECUTORS, registration
from jobwheel.admin.store.tables import job_group, job_info, job_registry
from jobwheel.admin.store.zone import InstallationZone

_APP_NAMES_LOCK = "jobwheel_app_names"


def hold_app_names(connection: Connection) -> None:
    """Let nobody else make or rename a group until the transaction ends: to be called before an app name is looked up.

    The reference's table has no unique index on it, and old databases hold an app name twice.
    """
    statements(connection).wait_for_lock(connection, _APP_NAMES_LOCK)


def insert_group(connection: Connection, zone: InstallationZone, group: Group) -> GroupId:
    """Write a new group; `group.id` is not looked at."""
    inserted = connection.execute(insert(job_group).values(**_values(zone, group), version=group.version))
    assert inserted.inserted_primary_key is not None
    return GroupId(inserted.inserted_primary_key[0])


def get_group(connection: Connection, zone: InstallationZone, group_id: GroupId, *, lock: bool = False) -> Group | None:
    """A group by its id; with `lock` its row is held until the end of the transaction."""
    query = select(job_group).where(job_group.c.id == group_id)
    row = connection.execute(query.with_for_update() if lock else query).first()
    return None if row is None else _group(row, zone)


def find_groups(connection: Connection, zone: InstallationZone, app_name: str) -> list[Group]:
    """The groups of an app name: at most one, but for databases of an old reference."""
    query = select(job_group).where(job_group.c.app_name == app_name).order_by(job_group.c.id)
    return [_group(row, zone) for row in connection.execute(query)]


def list_groups(
    connection: Connection,
    zone: InstallationZone,
    after_id: int,
    limit: int,
    group_ids: Collection[GroupId] | None = None,
) -> list[Group]:
    """Groups by ascending id, from the one after `after_id` on; of these alone if they are given."""
    query = select(job_group).where(job_group.c.id > after_id).order_by(job_group.c.id).limit(limit)
    if group_ids is not None:
        query = query.where(job_group.c.id.in_(group_ids))
    return [_group(row, zone) for row in connection.execute(query)]


def update_group(connection: Connection, zone: InstallationZone, group: Group) -> None:
    """Write a group that was read with `lock` and changed."""
    values = {**_values(zone, group), "version": group.version}
    connection.execute(update(job_group).where(job_group.c.id == group.id).values(values))


def delete_group(connection: Connection, group_id: GroupId) -> None:
    """Remove a group's row."""
    connection.execute(delete(job_group).where(job_group.c.id == group_id))


def count_jobs(connection: Connection, group_id: GroupId) -> int:
    """How many jobs belong to a group."""
    query = select(func.count()).select_from(job_info).where(job_info.c.job_group == group_id)
    return connection.execute(query).scalar_one()


def list_registrations(connection: Connection, app_names: Collection[str], since_ms: int) -> list[Registration]:
    """What executors of these app names registered and repeated after `since_ms` (the database's clock), sorted."""
    query = select(job_registry).where(
        job_registry.c.registry_group == EXECUTORS,
        job_registry.c.registry_key.in_(app_names),
        job_registry.c.beat_ms > since_ms,
    )
    found = [registration(row) for row in connection.execute(query)]
    # Here, since databases sort texts each in its own way.
    return sorted(found, key=lambda each: (each.app_name, each.address))


def _values(zone: InstallationZone, group: Group) -> dict[str, object]:
    return {
        "app_name": group.app_name,
        "title": group.title,
        "address_type": int(group.address_type),
        "address_list": ",".join(group.addresses) or None,
        "update_time": zone.to_wall(group.updated_ms),
    }


def _group(row: Row[tuple[object, ...]], zone: InstallationZone) -> Group:
    addresses = (address.strip() for address in (row.address_list or "").split(","))
    return Group(
        id=GroupId(row.id),
        app_name=row.app_name,
        title=row.title,
        address_type=AddressType.FIXED if row.address_type == AddressType.FIXED else AddressType.REGISTERED,
        addresses=tuple(address for address in addresses if address),
        updated_ms=0 if row.update_time is None else zone.from_wall(row.update_time),
        version=row.version,
        drains=read_drains(row.settings),
        tokens=read_tokens(row.access_tokens),
    )
