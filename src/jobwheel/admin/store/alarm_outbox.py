"""The outbox of alarms: what happened (channel 0), and what waits for a channel."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec
from sqlalchemy import Connection, delete, func, insert, select, update

from jobwheel.admin.domain.alarm import MERGED_FOR_MS, AlarmFacts, AlarmKind, Notice, merged
from jobwheel.admin.domain.ids import ChannelId, GroupId, JobId, RunId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.tables import alarm_outbox, alarm_window

UNGIVEN = 0
"""The channel of what has not been given to channels yet."""

_LOCK = "jobwheel_alarms"


@dataclass(frozen=True, slots=True)
class EndedForAlarm:
    """A run that has ended; `is_final`: no retry follows it."""

    run_id: RunId
    job_id: JobId
    group_id: GroupId
    outcome: Outcome
    ended_ms: int
    is_final: bool
    attempt: int


def note_ended(connection: Connection, ended: Sequence[EndedForAlarm]) -> None:
    """Note runs that did not succeed, in the transaction that ends them: what is told of them is decided later."""
    note(
        connection,
        [
            Notice(
                AlarmKind(each.outcome.value),
                each.ended_ms,
                each.group_id,
                each.job_id,
                each.run_id,
                each.attempt,
                each.is_final,
            )
            for each in ended
            if each.outcome is not Outcome.SUCCEEDED
        ],
    )


def note(connection: Connection, notices: Sequence[Notice]) -> None:
    """Write down what may be an alarm, in the transaction of what it tells."""
    if not notices:
        return
    rows = [
        {
            "channel_id": UNGIVEN,
            "job_id": each.job_id,
            "run_id": each.run_id,
            "kind": each.kind.value,
            "merge_key": "",
            "message": msgspec.json.encode(each).decode(),
            "created_ms": each.at_ms,
            "due_ms": each.at_ms,
        }
        for each in notices
    ]
    connection.execute(insert(alarm_outbox), rows)


def hold_alarms(connection: Connection) -> None:
    """One node at a time decides what is told, until the transaction ends: equal alarms must find each other."""
    statements(connection).wait_for_lock(connection, _LOCK)


def has_ungiven(connection: Connection) -> bool:
    """Whether anything is to be given to channels."""
    found = select(alarm_outbox.c.id).where(alarm_outbox.c.channel_id == UNGIVEN).limit(1)
    return connection.execute(found).first() is not None


@dataclass(frozen=True, slots=True)
class Ungiven:
    """A row of what happened."""

    id: int
    notice: Notice


def take_ungiven(connection: Connection, most: int) -> tuple[list[Ungiven], int]:
    """Take the oldest of what happened out of the outbox, under `hold_alarms`; also return how many rows that were.

    What nobody can read (written by hand, or by a later version) is taken out as well: it would come for ever.
    """
    query = select(alarm_outbox.c.id, alarm_outbox.c.message).where(alarm_outbox.c.channel_id == UNGIVEN)
    rows = connection.execute(query.order_by(alarm_outbox.c.due_ms).limit(most)).all()
    remove(connection, [row.id for row in rows])
    taken = []
    for row in rows:
        try:
            taken.append(Ungiven(row.id, msgspec.json.decode(row.message, type=Notice)))
        except msgspec.MsgspecError:
            continue
    return taken, len(rows)


def remove(connection: Connection, ids: Collection[int]) -> None:
    """Remove rows."""
    if ids:
        connection.execute(delete(alarm_outbox).where(alarm_outbox.c.id.in_(list(ids))))


def give(connection: Connection, channel_id: ChannelId, merge_key: str, facts: AlarmFacts, now_ms: int) -> None:
    """Give an alarm to a channel, under `hold_alarms`: to be sent at once, or with the equal ones at their time's end.

    One that waits already (for that end, or for another try) is joined.
    """
    waiting = connection.execute(
        select(alarm_outbox.c.id, alarm_outbox.c.message, alarm_outbox.c.merged)
        .where(
            alarm_outbox.c.merge_key == merge_key,
            alarm_outbox.c.channel_id == channel_id,
            alarm_outbox.c.owner.is_(None),
        )
        .order_by(alarm_outbox.c.id)
        .limit(1)
    ).first()
    if waiting is not None and _join(connection, waiting.id, waiting.merged, waiting.message, facts):
        return
    until_ms = connection.execute(select(alarm_window.c.until_ms).where(alarm_window.c.merge_key == merge_key)).scalar()
    # A clock that was set back must not hold alarms up for longer than they are merged.
    due_ms = now_ms if until_ms is None or not now_ms < until_ms <= now_ms + 2 * MERGED_FOR_MS else until_ms
    statements(connection).upsert(
        connection, alarm_window, {"merge_key": merge_key}, {"until_ms": due_ms + MERGED_FOR_MS}
    )
    add(connection, channel_id, merge_key, facts, now_ms, due_ms)


def add(
    connection: Connection, channel_id: ChannelId, merge_key: str, facts: AlarmFacts, now_ms: int, due_ms: int
) -> None:
    """Have a channel send an alarm at a moment, whatever else it sends. It is as old as what it tells."""
    connection.execute(
        insert(alarm_outbox).values(
            channel_id=channel_id,
            job_id=facts.job_id,
            run_id=facts.run_id,
            kind=facts.kind.value,
            merge_key=merge_key,
            message=msgspec.json.encode(facts).decode(),
            merged=facts.count,
            created_ms=min(now_ms, facts.last_ms),
            due_ms=due_ms,
        )
    )


def _join(connection: Connection, row_id: int, count: int, message: str, facts: AlarmFacts) -> bool:
    older = read_facts(message)
    if older is None:
        return False
    both = merged(older, facts)
    joined = connection.execute(
        update(alarm_outbox)
        # Unless its channel took it meanwhile, or another joined it.
        .where(alarm_outbox.c.id == row_id, alarm_outbox.c.owner.is_(None), alarm_outbox.c.merged == count)
        .values(message=msgspec.json.encode(both).decode(), merged=both.count, run_id=both.run_id)
    )
    return joined.rowcount == 1


def read_facts(message: str) -> AlarmFacts | None:
    """What a row tells; None if nobody can read it: written by hand, or by a later version."""
    try:
        return msgspec.json.decode(message, type=AlarmFacts)
    except msgspec.MsgspecError:
        return None


def forget_windows(connection: Connection, now_ms: int) -> None:
    """Remove the times of merging that are over."""
    connection.execute(delete(alarm_window).where(alarm_window.c.until_ms <= now_ms))


def count_waiting(connection: Connection) -> int:
    """How many alarms wait, for a channel or in one."""
    return connection.execute(select(func.count()).select_from(alarm_outbox)).scalar_one()
