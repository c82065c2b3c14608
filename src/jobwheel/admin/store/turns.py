"""Whose turn it is at work that any node may do but only one need do at a time."""

from sqlalchemy import Connection

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.settings_table import delete_setting, read_setting, write_setting

TURN_PREFIX = "turn."
UPKEEP_LOCK = "jobwheel_upkeep"
"""The row of the lock table that is held for a moment by who takes a turn or adds to what others add to."""


def take_turn(connection: Connection, name: str, node_id: NodeId, now_ms: int, for_ms: int) -> bool:
    """Take or keep a turn until `for_ms` from now, by the database's clock; False while it is another node's."""
    statements(connection).wait_for_lock(connection, UPKEEP_LOCK)
    holder, _, until_ms = (read_setting(connection, TURN_PREFIX + name) or "0 0").partition(" ")
    # A turn that lasts for longer than it was ever taken for was taken while the clock was wrong.
    if int(holder) != node_id and now_ms < int(until_ms) <= now_ms + for_ms:
        return False
    write_setting(connection, TURN_PREFIX + name, f"{node_id} {now_ms + for_ms}")
    return True


def end_turn(connection: Connection, name: str, node_id: NodeId) -> None:
    """Leave a turn to whoever comes next, if it is this node's."""
    statements(connection).wait_for_lock(connection, UPKEEP_LOCK)
    if (read_setting(connection, TURN_PREFIX + name) or "").startswith(f"{node_id} "):
        delete_setting(connection, TURN_PREFIX + name)
