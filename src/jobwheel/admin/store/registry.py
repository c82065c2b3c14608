"""The registry: which address of which app name beat when."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, delete, func, select, update

from jobwheel.admin.domain.drain import is_drained
from jobwheel.admin.domain.group import LIVE_FOR_MS, MOST_ADDRESS, SPARED_MS, AddressType, ExecutorLoad, Registration
from jobwheel.admin.domain.group_token import GroupToken, TokenRef
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.domain.listing import as_many_as_fit
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.dialects.base import PRIMARY_KEY
from jobwheel.admin.store.drains import read_drains
from jobwheel.admin.store.group_tokens import read_tokens
from jobwheel.admin.store.tables import job_group, job_registry
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.wire.messages import Dialect, RegistryRequest

EXECUTORS = "EXECUTOR"
"""The registry group of executors; rows of others are kept and ignored."""

_FORGET_AFTER_MS = 24 * 3600 * 1000
_MOST_LIST_BYTES = 65_535
"""Of the reference's column, on MySQL; a list that it cannot hold would keep every executor from registering."""


@dataclass(frozen=True, slots=True)
class GroupAddresses:
    """What routing needs of a group: its registered addresses that are live, or its fixed list.

    Who registered with a token of the group that is not valid any more is not live. `known` tells of each address that
    the registry has, live or not, which token it registered with; None instead for a group that never had any.
    """

    group_id: GroupId
    app_name: str
    fixed: bool
    registrations: tuple[Registration, ...]
    tokens: tuple[GroupToken, ...] = ()
    known: Mapping[str, TokenRef | None] | None = None


class _Features(msgspec.Struct, frozen=True):
    """What the engine must know of the column `features`: what the executor tells, and with what it came.

    Only executors of ours tell anything, their `instance` at least. `dialect` is that of others, if it was seen.
    """

    instance: str | None = None
    group_token: tuple[int, int] | None = msgspec.field(name="groupToken", default=None)
    batch: bool = False
    running: int = 0
    queued: int = 0
    spooled: int = 0
    abandoned: int = 0
    kill_by_log: bool = msgspec.field(name="killByLog", default=False)
    dialect: str | None = None

    @property
    def load(self) -> ExecutorLoad | None:
        if self.instance is None:
            return None
        return ExecutorLoad(self.running, self.queued, self.spooled, self.abandoned)

    @property
    def token(self) -> TokenRef | None:
        return None if self.group_token is None else TokenRef(GroupId(self.group_token[0]), self.group_token[1])


_NOTHING_TOLD = _Features()


def beat(
    connection: Connection,
    zone: InstallationZone,
    request: RegistryRequest,
    now_ms: int,
    token: TokenRef | None = None,
    *,
    is_newer: bool = False,
) -> bool:
    """Note an executor's beat; True if the address was not live before, or another process or token has it now.

    `now_ms` is by the database's clock. `token` is the group's that it came with, if it did; `is_newer`, whether it
    came as executors of dialect C do.
    """
    columns = (job_registry.c.id, job_registry.c.beat_ms, job_registry.c.instance_id, job_registry.c.features)
    row = connection.execute(select(*columns).where(_is(request))).first()
    instance_id = request.features.instance if request.features else None
    values = {
        "update_time": zone.to_wall(now_ms),
        "beat_ms": now_ms,
        "instance_id": instance_id,
        "features": _features_text(request, token, is_newer=is_newer),
    }
    if row is None:
        # Executors beat at every admin, so another node may write the same row at this moment.
        key = {
            "registry_group": request.registry_group,
            "registry_key": request.registry_key,
            "registry_value": request.registry_value,
        }
        statements(connection).upsert(connection, job_registry, key, values)
        return True
    connection.execute(update(job_registry).where(job_registry.c.id == row.id).values(**values))
    is_other = row.instance_id != instance_id or _features(row.features).token != token
    return is_other or row.beat_ms is None or now_ms - row.beat_ms >= LIVE_FOR_MS


def remove(connection: Connection, request: RegistryRequest) -> bool:
    """Forget an address; whether it was known."""
    return connection.execute(delete(job_registry).where(_is(request))).rowcount > 0


def remove_left(connection: Connection, left: Mapping[tuple[str, str], int]) -> int:
    """Remove addresses, by app name and address, whose last beat is not later than when they left."""
    return sum(
        connection.execute(
            delete(job_registry).where(
                job_registry.c.registry_group == EXECUTORS,
                job_registry.c.registry_key == app_name,
                job_registry.c.registry_value == address,
                job_registry.c.beat_ms <= left_ms,
            )
        ).rowcount
        for (app_name, address), left_ms in sorted(left.items())
    )


def spare_addresses(connection: Connection, now_ms: int) -> int:
    """At the start of the only node: give addresses that lived when the last beat of all came in time to beat again.

    While no admin ran, nobody could beat; without this, every run of the first half minute would find no live address.
    One that is dead after all is found out by its first refused connection. A beat of the future, which a clock that
    was set back leaves behind, must not keep its address alive until that time comes. Returns how many were spared.
    """
    last_ms = connection.execute(select(func.max(job_registry.c.beat_ms))).scalar()
    if last_ms is None:
        return 0
    spared_ms = now_ms - LIVE_FOR_MS + SPARED_MS
    return connection.execute(
        update(job_registry)
        .where(
            (job_registry.c.beat_ms.between(last_ms - LIVE_FOR_MS + 1, spared_ms - 1))
            | (job_registry.c.beat_ms > now_ms),
        )
        .values(beat_ms=spared_ms)
    ).rowcount


def has_group(connection: Connection, app_name: str) -> bool:
    """Whether a group has this app name."""
    return connection.execute(select(job_group.c.id).where(job_group.c.app_name == app_name)).first() is not None


def registration(row: Row[*tuple[Any, ...]]) -> Registration:
    """A row of the registry."""
    # A row that an admin of another make wrote has no beat of ours.
    beat_ms = row.beat_ms or 0
    if row.features is None:
        return Registration(row.registry_key, row.registry_value, beat_ms, row.instance_id)
    told = _features(row.features)
    return Registration(
        row.registry_key,
        row.registry_value,
        beat_ms,
        row.instance_id,
        told.batch,
        told.load,
        kills_by_run=told.kill_by_log,
        token=told.token,
        is_newer=told.dialect == Dialect.C,
    )


def load_addresses(connection: Connection, now_ms: int) -> list[GroupAddresses]:
    """The addresses of every group, sorted (a fixed list in its own order)."""
    # The groups first: on servers each statement sees its own moment, and a group without the beat that made it would
    # have no address.
    groups = connection.execute(select(job_group)).all()
    # Of groups with tokens the dead ones too: somebody may still read a log there, and must not tell another token.
    with_tokens = {row.app_name for row in groups if row.access_tokens}
    wanted = job_registry.c.beat_ms > now_ms - LIVE_FOR_MS
    if with_tokens:
        wanted |= job_registry.c.registry_key.in_(with_tokens)
    found: dict[str, list[Registration]] = {}
    for row in connection.execute(select(job_registry).where(job_registry.c.registry_group == EXECUTORS, wanted)):
        found.setdefault(row.registry_key, []).append(registration(row))
    return [_group_addresses(row, found.get(row.app_name, []), now_ms) for row in groups]


def store_address_lists(connection: Connection, zone: InstallationZone, now_ms: int) -> int:
    """Keep `address_list` of registered groups equal to their live addresses; return how many groups changed.

    Groups are held before what is written is read: of two nodes that hear of an executor each, the second must see the
    one that the first has written.
    """
    stale = list(_stale_lists(connection, now_ms))
    if not stale:
        return 0
    held = select(job_group.c.id).where(job_group.c.id.in_(stale)).order_by(job_group.c.id).with_for_update()
    # By their ids alone: whatever else is read is held as well, and in another order.
    connection.execute(statements(connection).by_index(held, job_group, PRIMARY_KEY)).all()
    changed = {group_id: text for group_id, text in _stale_lists(connection, now_ms).items() if group_id in stale}
    for group_id, text in changed.items():
        connection.execute(
            update(job_group)
            .where(job_group.c.id == group_id)
            .values(address_list=text, update_time=zone.to_wall(now_ms))
        )
    return len(changed)


def _stale_lists(connection: Connection, now_ms: int) -> dict[GroupId, str | None]:
    """The lists that registered groups should have and do not."""
    stored = {row.id: row.address_list for row in connection.execute(select(job_group.c.id, job_group.c.address_list))}
    wanted = {
        group.group_id: _address_list(group) or None for group in load_addresses(connection, now_ms) if not group.fixed
    }
    return {group_id: text for group_id, text in wanted.items() if group_id in stored and stored[group_id] != text}


def _address_list(group: GroupAddresses) -> str:
    """The live addresses, as many as there is room for: routing goes by the registry, which holds all of them."""
    addresses = (each.address for each in group.registrations)
    return ",".join(as_many_as_fit(addresses, _MOST_LIST_BYTES + 1, lambda each: len(each.encode()) + 1))


def remove_forgotten(connection: Connection, now_ms: int) -> int:
    """Remove rows that are dead for a day."""
    old = job_registry.c.beat_ms < now_ms - _FORGET_AFTER_MS
    return connection.execute(delete(job_registry).where(job_registry.c.registry_group == EXECUTORS, old)).rowcount


def _group_addresses(row: Row[*tuple[Any, ...]], found: list[Registration], now_ms: int) -> GroupAddresses:
    fixed = row.address_type == AddressType.FIXED
    tokens = read_tokens(row.access_tokens)
    if fixed:
        listed = [address.strip() for address in (row.address_list or "").split(",")]
        # One that no run's row can hold would fail every take-off that it is part of.
        usable = [address for address in listed if 0 < len(address) <= MOST_ADDRESS]
        registrations = [Registration(row.app_name, address, 0, None, batch=False) for address in usable]
    else:
        valid = {None, *(TokenRef(GroupId(row.id), each.id) for each in tokens if each.is_valid(now_ms))}
        live = (each for each in found if each.beat_ms > now_ms - LIVE_FOR_MS and each.token in valid)
        registrations = sorted(live, key=lambda each: each.address)
    drains = read_drains(row.settings)
    if drains:
        registrations = [
            replace(each, draining=is_drained(drains, each.address, each.instance_id)) for each in registrations
        ]
    known = {each.address: each.token for each in found} if row.access_tokens else None
    return GroupAddresses(GroupId(row.id), row.app_name, fixed, tuple(registrations), tokens, known)


def _features_text(request: RegistryRequest, token: TokenRef | None, *, is_newer: bool) -> str | None:
    told = {} if request.features is None else msgspec.to_builtins(request.features)
    if token is not None:
        told["groupToken"] = (token.group_id, token.token_id)
    if is_newer and request.features is None:
        # Those of ours speak every dialect.
        told["dialect"] = Dialect.C.value
    return msgspec.json.encode(told).decode() if told else None


def _features(text: str | None) -> _Features:
    if text is None:
        return _NOTHING_TOLD
    try:
        return msgspec.json.decode(text, type=_Features)
    except msgspec.DecodeError:
        # Not as `beat` writes it. Whoever is there still takes runs one by one.
        return _NOTHING_TOLD


def _is(request: RegistryRequest) -> ColumnElement[bool]:
    return (
        (job_registry.c.registry_group == request.registry_group)
        & (job_registry.c.registry_key == request.registry_key)
        & (job_registry.c.registry_value == request.registry_value)
    )
