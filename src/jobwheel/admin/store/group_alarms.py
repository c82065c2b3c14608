"""Who beats in each group, for telling when somebody does not any more."""

from dataclasses import dataclass

from sqlalchemy import Connection, exists, select

from jobwheel.admin.domain.group import AddressType
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.store.registry import EXECUTORS
from jobwheel.admin.store.tables import job_group, job_info, job_registry


@dataclass(frozen=True, slots=True)
class GroupBeats:
    """A registered group: its addresses with their last beats, by the database's clock; whether a job of it runs."""

    group_id: GroupId
    app_name: str
    beats: dict[str, int]
    is_needed: bool


def group_beats(connection: Connection) -> list[GroupBeats]:
    """The groups that are fed by registration. Addresses that left gracefully are in none; rows stay for a day."""
    is_needed = exists().where(job_info.c.job_group == job_group.c.id, job_info.c.trigger_status == 1)
    groups = connection.execute(
        select(job_group.c.id, job_group.c.app_name, is_needed.label("is_needed")).where(
            job_group.c.address_type != int(AddressType.FIXED)
        )
    ).all()
    beats: dict[str, dict[str, int]] = {}
    rows = connection.execute(
        select(job_registry.c.registry_key, job_registry.c.registry_value, job_registry.c.beat_ms).where(
            job_registry.c.registry_group == EXECUTORS, job_registry.c.beat_ms.is_not(None)
        )
    )
    for row in rows:
        beats.setdefault(row.registry_key, {})[row.registry_value] = row.beat_ms
    return [
        GroupBeats(GroupId(row.id), row.app_name, beats.get(row.app_name, {}), bool(row.is_needed)) for row in groups
    ]
