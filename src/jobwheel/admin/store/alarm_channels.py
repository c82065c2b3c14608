"""Channels of alarms: few rows, read whole."""

import json

from sqlalchemy import Connection, Row, delete, insert, select, update

from jobwheel.admin.domain.alarm import AlarmChannel
from jobwheel.admin.domain.ids import ChannelId
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.tables import alarm_channel, alarm_outbox

_LOCK = "jobwheel_alarm_channels"


def hold_channel_names(connection: Connection) -> None:
    """Let nobody else make or rename a channel until the transaction ends."""
    statements(connection).wait_for_lock(connection, _LOCK)


def insert_channel(connection: Connection, channel: AlarmChannel) -> ChannelId:
    """Write a new channel; `channel.id` is not looked at."""
    inserted = connection.execute(insert(alarm_channel).values(_values(channel)))
    assert inserted.inserted_primary_key is not None
    return ChannelId(inserted.inserted_primary_key[0])


def get_channel(connection: Connection, channel_id: ChannelId, *, lock: bool = False) -> AlarmChannel | None:
    """A channel by its id; with `lock` its row is held until the end of the transaction."""
    query = select(alarm_channel).where(alarm_channel.c.id == channel_id)
    row = connection.execute(query.with_for_update() if lock else query).first()
    return None if row is None else _channel(row)


def list_channels(connection: Connection) -> list[AlarmChannel]:
    """All channels, by ascending id."""
    return [_channel(row) for row in connection.execute(select(alarm_channel).order_by(alarm_channel.c.id))]


def update_channel(connection: Connection, channel: AlarmChannel) -> None:
    """Write a channel that was read with `lock` and changed."""
    connection.execute(update(alarm_channel).where(alarm_channel.c.id == channel.id).values(_values(channel)))


def delete_channel(connection: Connection, channel_id: ChannelId) -> int:
    """Remove a channel and what waits for it; return how many alarms waited."""
    waiting = connection.execute(delete(alarm_outbox).where(alarm_outbox.c.channel_id == channel_id)).rowcount
    connection.execute(delete(alarm_channel).where(alarm_channel.c.id == channel_id))
    return waiting


def _values(channel: AlarmChannel) -> dict[str, object]:
    return {
        "name": channel.name,
        "kind": channel.kind,
        "settings": json.dumps(dict(channel.settings), ensure_ascii=False),
        "disabled": int(channel.disabled),
        "is_default": int(channel.is_default),
        "for_admins": int(channel.for_admins),
        "version": channel.version,
    }


def _channel(row: Row[*tuple[object, ...]]) -> AlarmChannel:
    return AlarmChannel(
        id=ChannelId(row.id),
        name=row.name,
        kind=row.kind,
        settings=json.loads(row.settings),
        disabled=bool(row.disabled),
        is_default=bool(row.is_default),
        for_admins=bool(row.for_admins),
        version=row.version,
    )
