"""Alarms on their way: taken by a node for its channel, sent, removed; or put back for another try."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, delete, or_, select, update

from jobwheel.admin.domain.alarm import MERGED_FOR_MS, TRIED_FOR_MS, AlarmChannel, AlarmFacts, AlarmKind, merged
from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.ids import ChannelId, JobId, NodeId, RunId
from jobwheel.admin.store.alarm_channels import get_channel
from jobwheel.admin.store.alarm_outbox import UNGIVEN, add, read_facts, remove
from jobwheel.admin.store.events import insert_event
from jobwheel.admin.store.tables import alarm_outbox, job_log
from jobwheel.kernel.instants import instant_text

SENT: Final = 2
FAILED: Final = 3
"""What `alarm_status` of a run says, as the reference means it."""

_MOST_AT_ONCE: Final = 500
_MOST_WAIT_MS: Final = 2 * MERGED_FOR_MS
"""Nothing waits for longer, for other alarms or for another try."""


@dataclass(frozen=True, slots=True)
class TakenAlarm:
    """An alarm that this node sends now, its `attempt`-th time, until another may take it at `lease_ms`."""

    id: int
    channel: AlarmChannel
    facts: AlarmFacts
    attempt: int
    created_ms: int
    lease_ms: int


@dataclass(frozen=True, slots=True)
class Take:
    """What a look into the outbox gave: perhaps an alarm; how many were given up, or are too old to be sent."""

    alarm: TakenAlarm | None = None
    given_up: int = 0
    outdated: int = 0


@dataclass(frozen=True, slots=True)
class _Told:
    """A row, and what it tells."""

    row: Row[*tuple[Any, ...]]
    facts: AlarmFacts


def free_all(connection: Connection, now_ms: int) -> int:
    """At the start of the only node: what an earlier one was sending is due at once, since it is certainly dead."""
    held = update(alarm_outbox).where(alarm_outbox.c.owner.is_not(None))
    return connection.execute(held.values(owner=None, due_ms=now_ms)).rowcount


def free_of(connection: Connection, dead: Collection[NodeId], now_ms: int) -> int:
    """What nodes that were declared dead were sending is due at once; returns how many alarms.

    Nothing is waited for: what the last transaction of such a node still holds comes due when its lease ends.
    """
    held = (
        select(alarm_outbox.c.id)
        .where(alarm_outbox.c.owner.in_(sorted(dead)))
        .order_by(alarm_outbox.c.id)
        .with_for_update(skip_locked=True)
    )
    ids = list(connection.execute(held).scalars())
    if ids:
        connection.execute(update(alarm_outbox).where(alarm_outbox.c.id.in_(ids)).values(owner=None, due_ms=now_ms))
    return len(ids)


def due_channels(connection: Connection, now_ms: int) -> list[ChannelId]:
    """The channels for which something is due."""
    query = select(alarm_outbox.c.channel_id).distinct().where(_is_due(now_ms), alarm_outbox.c.channel_id != UNGIVEN)
    return sorted(ChannelId(each) for each in connection.execute(query).scalars())


def take(connection: Connection, channel_id: ChannelId, node_id: NodeId, now_ms: int, lease_ms: int) -> Take:
    """Take the channel's next alarm; its equal ones that wait go with it.

    It is this node's until the lease ends: then it is due again, for any node. What could not be sent for an hour is
    given up; what nobody tried for so long (no node ran, or the channel was slow) is told of in one message.
    """
    due = connection.execute(
        select(alarm_outbox)
        .where(alarm_outbox.c.channel_id == channel_id, _is_due(now_ms))
        .order_by(alarm_outbox.c.due_ms, alarm_outbox.c.id)
        .limit(_MOST_AT_ONCE)
        .with_for_update(skip_locked=True)
    ).all()
    if not due:
        return Take()
    channel = get_channel(connection, channel_id)
    if channel is None or channel.disabled:
        remove(connection, [row.id for row in due])
        return Take()
    told = [_Told(row, facts) for row in due if (facts := read_facts(row.message)) is not None]
    remove(connection, {row.id for row in due} - {each.row.id for each in told})
    old = [each for each in told if each.row.created_ms < now_ms - TRIED_FOR_MS]
    if old:
        return _put_away(connection, channel, old, now_ms)
    if not told:
        return Take()
    row = told[0].row
    equal = _equal(connection, row, now_ms)
    facts = _joined([told[0], *equal])
    taken = connection.execute(
        update(alarm_outbox)
        .where(
            alarm_outbox.c.id == row.id, alarm_outbox.c.due_ms == row.due_ms, alarm_outbox.c.attempts == row.attempts
        )
        .values(
            owner=node_id,
            attempts=row.attempts + 1,
            due_ms=lease_ms,
            message=msgspec.json.encode(facts).decode(),
            merged=facts.count,
        )
    )
    if taken.rowcount != 1:
        return Take()
    remove(connection, [each.row.id for each in equal])
    return Take(TakenAlarm(row.id, channel, facts, row.attempts + 1, row.created_ms, lease_ms))


def _is_due(now_ms: int) -> ColumnElement[bool]:
    # What is to wait for longer than anything was told to do so by a clock that has been set back since.
    return or_(alarm_outbox.c.due_ms <= now_ms, alarm_outbox.c.due_ms > now_ms + _MOST_WAIT_MS)


def _equal(connection: Connection, row: Row[*tuple[Any, ...]], now_ms: int) -> list[_Told]:
    """The other alarms of the channel that say the same and that nobody sends; none of them waits for another time."""
    free = alarm_outbox.c.owner.is_(None) | _is_due(now_ms)
    # What waits for the end of its time may be joined if this one has been tried: it is late as well.
    ready = _is_due(now_ms) if row.attempts == 0 else alarm_outbox.c.id != row.id
    query = select(alarm_outbox).where(
        alarm_outbox.c.merge_key == row.merge_key,
        alarm_outbox.c.channel_id == row.channel_id,
        alarm_outbox.c.id != row.id,
        free,
        ready,
    )
    rows = connection.execute(query.order_by(alarm_outbox.c.id).with_for_update(skip_locked=True)).all()
    return [_Told(each, facts) for each in rows if (facts := read_facts(each.message)) is not None]


def _joined(told: list[_Told]) -> AlarmFacts:
    facts = told[0].facts
    for each in told[1:]:
        older, newer = (facts, each.facts) if facts.last_ms <= each.facts.last_ms else (each.facts, facts)
        facts = merged(older, newer)
    return facts


def _put_away(connection: Connection, channel: AlarmChannel, old: list[_Told], now_ms: int) -> Take:
    tried = [each for each in old if each.row.attempts > 0]
    untried = [each.facts for each in old if each.row.attempts == 0]
    for each in tried:
        _give_up(connection, channel, each.facts, now_ms, "no node came to an end with it")
    if untried:
        _tell_of_outdated(connection, channel, untried, now_ms)
    remove(connection, [each.row.id for each in old])
    return Take(None, len(tried), len(untried))


def _tell_of_outdated(connection: Connection, channel: AlarmChannel, told: list[AlarmFacts], now_ms: int) -> None:
    count = sum(each.count for each in told)
    names = list(dict.fromkeys(f"{each.job or each.group} ({each.kind.value})" for each in told))
    more = f", +{len(names) - 20}" if len(names) > 20 else ""
    first_ms, last_ms = min(each.first_ms for each in told), max(each.last_ms for each in told)
    span = f"{instant_text(first_ms)} - {instant_text(last_ms)}"
    words = f"{span}: {', '.join(names[:20])}{more}"
    # Told of now: it is not outdated itself.
    facts = AlarmFacts(AlarmKind.OUTDATED, now_ms, now_ms, told[-1].zone, count=count, words=words)
    add(connection, channel.id, f"outdated:{channel.id}", facts, now_ms, now_ms)
    details = {"channel": channel.name, "count": count, "alarms": names[:20]}
    insert_event(connection, NewEvent(EventKind.ALARM_OUTDATED, now_ms, details=details))


def settle_sent(connection: Connection, node_id: NodeId, alarm: TakenAlarm) -> bool:
    """An alarm was sent; False if another node took it meanwhile, and may have sent it as well."""
    sent = connection.execute(delete(alarm_outbox).where(*_mine(node_id, alarm)))
    _mark_runs(connection, alarm.facts, SENT)
    return sent.rowcount == 1


def settle_failed(
    connection: Connection, node_id: NodeId, alarm: TakenAlarm, again_ms: int, now_ms: int, reason: str
) -> bool:
    """An alarm was not sent: put it back until `again_ms`, or give it up if its hour is over by then.

    Returns whether it was given up.
    """
    if again_ms <= alarm.created_ms + TRIED_FOR_MS:
        back = update(alarm_outbox).where(*_mine(node_id, alarm)).values(owner=None, due_ms=again_ms)
        connection.execute(back)
        return False
    gone = connection.execute(delete(alarm_outbox).where(*_mine(node_id, alarm)))
    if gone.rowcount == 1:
        _give_up(connection, alarm.channel, alarm.facts, now_ms, reason)
    return gone.rowcount == 1


def _mine(node_id: NodeId, alarm: TakenAlarm) -> tuple[ColumnElement[bool], ...]:
    return (
        alarm_outbox.c.id == alarm.id,
        alarm_outbox.c.owner == node_id,
        alarm_outbox.c.attempts == alarm.attempt,
    )


def _give_up(connection: Connection, channel: AlarmChannel, facts: AlarmFacts, now_ms: int, reason: str) -> None:
    details = {"channel": channel.name, "alarm": facts.kind.value, "count": facts.count, "reason": reason[:500]}
    event = NewEvent(
        EventKind.ALARM_GIVEN_UP,
        now_ms,
        job_id=None if facts.job_id is None else JobId(facts.job_id),
        run_id=None if facts.run_id is None else RunId(facts.run_id),
        details=details,
    )
    insert_event(connection, event)
    _mark_runs(connection, facts, FAILED)


def _mark_runs(connection: Connection, facts: AlarmFacts, status: int) -> None:
    """Note it in the runs: sent once is sent, whatever became of other channels."""
    ids = sorted(facts.run_ids)
    if ids:
        connection.execute(
            update(job_log)
            .where(job_log.c.id.in_(ids), job_log.c.phase.is_(None), job_log.c.alarm_status != SENT)
            .values(alarm_status=status)
        )
