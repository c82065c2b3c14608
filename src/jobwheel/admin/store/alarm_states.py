"""What was told last of a group, or of a job that fails: under `alarm_outbox.hold_alarms` alone."""

from typing import TypeVar

import msgspec
from sqlalchemy import Connection, delete, select

from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.tables import alarm_state

State = TypeVar("State", bound=msgspec.Struct)


def read_states(connection: Connection, prefix: str, kind: type[State]) -> dict[int, State]:
    """The states of subjects `prefix:id` by id; one that cannot be read counts as none."""
    query = select(alarm_state).where(alarm_state.c.subject.startswith(f"{prefix}:", autoescape=True))
    states = {}
    for row in connection.execute(query):
        try:
            states[int(row.subject.partition(":")[2])] = msgspec.json.decode(row.state, type=kind)
        except (msgspec.MsgspecError, ValueError):
            continue
    return states


def write_state(connection: Connection, prefix: str, subject_id: int, state: msgspec.Struct) -> None:
    """Remember a state."""
    values = {"state": msgspec.json.encode(state).decode()}
    statements(connection).upsert(connection, alarm_state, {"subject": f"{prefix}:{subject_id}"}, values)


def delete_state(connection: Connection, prefix: str, subject_id: int) -> None:
    """Forget a state."""
    connection.execute(delete(alarm_state).where(alarm_state.c.subject == f"{prefix}:{subject_id}"))
