"""Tells when a group has no executor any more, or one of its executors has gone without a word; and when it is over."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from jobwheel.admin.domain.alarm import AlarmKind, Notice
from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.group import LIVE_FOR_MS
from jobwheel.admin.domain.listing import as_many_as_fit
from jobwheel.admin.store import Connection
from jobwheel.admin.store.alarm_outbox import hold_alarms, note
from jobwheel.admin.store.alarm_states import delete_state, read_states, write_state
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import insert_events
from jobwheel.admin.store.group_alarms import GroupBeats, group_beats
from jobwheel.kernel.clock import Clock

LOOK_EVERY_S: Final = 5.0
EMPTY_FOR_MS: Final = 30_000
"""A group that has lost its last executor may be one that is being restarted: so long it is waited for."""

JUDGES_AFTER_S: Final = 60.0
"""A node tells of nobody before it has looked at the beats for so long: until then nobody could be heard."""

_MOST_BYTES: Final = 60_000
"""For the addresses of a state, whose column has 65,535 on MySQL."""

_PREFIX: Final = "group"
_EVENTS: Final = {
    AlarmKind.GROUP_OFFLINE: EventKind.GROUP_OFFLINE,
    AlarmKind.GROUP_ONLINE: EventKind.GROUP_ONLINE,
    AlarmKind.EXECUTOR_GONE: EventKind.GROUP_EXECUTOR_GONE,
    AlarmKind.EXECUTOR_BACK: EventKind.GROUP_EXECUTOR_BACK,
}


class GroupState(msgspec.Struct, frozen=True):
    """What is known of a group: who is live, who went without a word; since when nobody is live (None: somebody is).

    `is_offline`: it was told that nobody is.
    """

    live: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    empty_since_ms: int | None = None
    is_offline: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """The state that a group is in now, and what is to be told of the change."""

    state: GroupState
    told: tuple[tuple[AlarmKind, str], ...] = field(default=())


def judge(known: GroupState | None, group: GroupBeats, now_ms: int) -> Judgement:
    """What has changed since the state that is known; the first look tells nothing but that nobody is there."""
    live = {address for address, beat_ms in group.beats.items() if now_ms - beat_ms < LIVE_FOR_MS}
    was_live, was_gone = (set(known.live), set(known.gone)) if known is not None else (set(), set())
    # Who leaves gracefully leaves the registry at once; who is still in it, and silent, went without a word.
    gone = {address for address in (was_live | was_gone) - live if address in group.beats}
    told = [(AlarmKind.EXECUTOR_GONE, address) for address in sorted(gone - was_gone)]
    told += [(AlarmKind.EXECUTOR_BACK, address) for address in sorted(was_gone & live)]
    empty_since_ms = None
    is_offline = known is not None and known.is_offline
    if not live:
        empty_since_ms = now_ms if known is None or known.empty_since_ms is None else known.empty_since_ms
        if group.is_needed and not is_offline and now_ms - empty_since_ms >= EMPTY_FOR_MS:
            is_offline = True
            told.append((AlarmKind.GROUP_OFFLINE, ""))
    elif is_offline:
        is_offline = False
        told.append((AlarmKind.GROUP_ONLINE, ""))
    return Judgement(
        _bounded(GroupState(tuple(sorted(live)), tuple(sorted(gone)), empty_since_ms, is_offline)), tuple(told)
    )


def _bounded(state: GroupState) -> GroupState:
    """With as many addresses as its column holds; when others go or come back, nobody is told."""
    kept = as_many_as_fit((*state.gone, *state.live), _MOST_BYTES, lambda each: len(msgspec.json.encode(each)) + 1)
    gone, live = kept[: len(state.gone)], kept[len(state.gone) :]
    return msgspec.structs.replace(state, live=tuple(live), gone=tuple(gone))


class GroupAlarms:
    """Compares who beats with what was told last, for each group. Of a cluster, one node tells each change."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._since_s: float | None = None

    async def run_once(self) -> int:
        """Tell what has changed; says how many groups did. A pass that fails begins the time of looking on anew."""
        since_s, self._since_s = self._since_s, None
        states, groups = await self._database.read(_look)
        self._since_s = self._clock.monotonic() if since_s is None else since_s
        if self._clock.monotonic() - self._since_s < JUDGES_AFTER_S:
            return 0
        if not _changed(states, groups, self._database.now_ms()):
            return 0
        return await self._database.write(_tell, self._database.now_ms(), self._clock.now())


def _look(connection: Connection) -> tuple[dict[int, GroupState], list[GroupBeats]]:
    return read_states(connection, _PREFIX, GroupState), group_beats(connection)


def _changed(states: Mapping[int, GroupState], groups: list[GroupBeats], now_ms: int) -> bool:
    is_new = any(judge(states.get(each.group_id), each, now_ms).state != states.get(each.group_id) for each in groups)
    return is_new or bool(states.keys() - {each.group_id for each in groups})


def _tell(connection: Connection, now_ms: int, at_ms: int) -> int:
    """Look again, now that nobody else tells anything, and tell."""
    hold_alarms(connection)
    states, groups = _look(connection)
    for group_id in states.keys() - {each.group_id for each in groups}:
        delete_state(connection, _PREFIX, group_id)
    changes = 0
    for group in groups:
        known = states.get(group.group_id)
        judgement = judge(known, group, now_ms)
        if judgement.state == known:
            continue
        changes += 1
        write_state(connection, _PREFIX, group.group_id, judgement.state)
        note(connection, [Notice(kind, now_ms, group.group_id, words=words) for kind, words in judgement.told])
        insert_events(connection, [_event(group, kind, words, at_ms) for kind, words in judgement.told])
    return changes


def _event(group: GroupBeats, kind: AlarmKind, address: str, at_ms: int) -> NewEvent:
    details: dict[str, object] = {"app_name": group.app_name}
    if address:
        details["address"] = address
    return NewEvent(_EVENTS[kind], at_ms, group_id=group.group_id, details=details)
