"""Making, changing and deleting groups."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.group import LIVE_FOR_MS, MOST_ADDRESS, AddressType, Group, Registration, may_have_runs
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.engine.addresses import AddressBook
from jobwheel.admin.services.errors import (
    GroupInUseError,
    InvalidFieldError,
    NotFoundError,
    TakenError,
    VersionConflictError,
)
from jobwheel.admin.services.live_addresses import (
    DrainWish,
    LiveAddress,
    find_address,
    live_addresses,
    wished_drains,
)
from jobwheel.admin.services.texts import checked_text, why_no_address
from jobwheel.admin.store import Connection
from jobwheel.admin.store.api_tokens import delete_api_tokens_of
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.drains import write_drains
from jobwheel.admin.store.events import insert_event
from jobwheel.admin.store.groups import (
    count_jobs,
    delete_group,
    find_groups,
    get_group,
    hold_app_names,
    insert_group,
    list_groups,
    list_registrations,
    update_group,
)
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.client_request import without_credentials

log = get_logger(__name__)

_APP_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{3,63}", re.ASCII)
_MOST_ADDRESSES_TEXT: Final = 65_535
ADDRESS_TYPES: Final = {"registered": AddressType.REGISTERED, "fixed": AddressType.FIXED}


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group, and where its executors are at the moment."""

    group: Group
    live_addresses: tuple[LiveAddress, ...]


class Groups:
    """The use cases of groups. `actor` is the name of who asks; `given` holds fields of the API with checked types."""

    def __init__(self, database: Database, clock: Clock, zone: InstallationZone, book: AddressBook) -> None:
        self._database = database
        self._book = book
        self._clock = clock
        self._zone = zone

    async def get(self, group_id: GroupId) -> GroupView:
        """A group.

        Raises:
            NotFoundError: there is none of this id.
        """
        return await self._database.read(self._get, group_id)

    async def page(self, after_id: int, limit: int, group_ids: frozenset[GroupId] | None = None) -> Sequence[GroupView]:
        """Groups by ascending id; of these alone if they are given."""
        return await self._database.read(self._list, after_id, limit, group_ids)

    async def create(self, given: Mapping[str, Any], *, actor: str) -> GroupView:
        """Make a group.

        Raises:
            InvalidFieldError: a field is wrong.
            TakenError: a group of this app name exists.
        """
        for name in ("app_name", "title"):
            if name not in given:
                raise InvalidFieldError(name, "is required")
        view = await self._database.write(self.create_in, given, actor)
        await self.make_known()
        return view

    async def update(
        self, group_id: GroupId, given: Mapping[str, Any], *, version: int | None, actor: str
    ) -> GroupView:
        """Change the fields that are given; with `version` only if nobody changed the group since it was read.

        Raises:
            NotFoundError: there is no such group.
            InvalidFieldError: a field is wrong.
            TakenError: a group of this app name exists.
            VersionConflictError: somebody changed it.
        """
        view = await self._database.write(self._update, group_id, given, version, actor)
        await self.make_known()
        return view

    async def delete(self, group_id: GroupId, *, actor: str) -> None:
        """Remove a group that has no jobs.

        Raises:
            NotFoundError: there is no such group.
            GroupInUseError: it has jobs.
        """
        await self._database.write(self._delete, group_id, actor)
        await self.make_known()

    async def drain(self, group_id: GroupId, address: str, *, draining: bool, actor: str) -> GroupView:
        """Give the executor at an address no new runs, or give it some again; its runs go on.

        It ends by itself when another process registers there. A slash at the address's end does not matter.

        Raises:
            NotFoundError: there is no such group.
            InvalidFieldError: no executor of the group is at this address.
        """
        view = await self._database.write(self._drain, group_id, DrainWish(address, draining, actor))
        await self.make_known()
        return view

    async def make_known(self) -> None:
        """Runs of the group find what has been committed at once, not with the next look."""
        try:
            await self._book.refresh()
        except Exception as error:  # noqa: BLE001 - it is committed, which an error would deny
            log.warning("groups.refresh_failed", error=repr(error))

    def _get(self, connection: Connection, group_id: GroupId) -> GroupView:
        group = get_group(connection, self._zone, group_id)
        if group is None:
            raise NotFoundError("group", group_id)
        return self._viewed(connection, [group])[0]

    def _list(
        self, connection: Connection, after_id: int, limit: int, group_ids: frozenset[GroupId] | None
    ) -> list[GroupView]:
        return self._viewed(connection, list_groups(connection, self._zone, after_id, limit, group_ids))

    def create_in(self, connection: Connection, given: Mapping[str, Any], actor: str) -> GroupView:
        """Make a group in the caller's transaction; see `create`. Who commits makes it known."""
        group = _changed(Group(GroupId(0), "", "", AddressType.REGISTERED, (), self._clock.now(), 0), given)
        hold_app_names(connection)
        self._check_free(connection, group)
        group = replace(group, id=insert_group(connection, self._zone, group))
        insert_event(connection, self._event(EventKind.GROUP_CREATED, group, actor, _details(group)))
        return self._viewed(connection, [group])[0]

    def _update(
        self, connection: Connection, group_id: GroupId, given: Mapping[str, Any], version: int | None, actor: str
    ) -> GroupView:
        if "app_name" in given:
            # Before the group's row: whoever registers holds the names first, too.
            hold_app_names(connection)
        old = self._locked(connection, group_id)
        if version is not None and version != old.version:
            raise VersionConflictError("group", version, old.version)
        group = _changed(old, given)
        if group != old:
            self._check_free(connection, group)
            group = replace(group, updated_ms=self._clock.now(), version=old.version + 1)
            update_group(connection, self._zone, group)
            details = {"before": _details(old), "after": _details(group)}
            insert_event(connection, self._event(EventKind.GROUP_UPDATED, group, actor, details))
        return self._viewed(connection, [group])[0]

    def _delete(self, connection: Connection, group_id: GroupId, actor: str) -> None:
        group = self._locked(connection, group_id)
        jobs = count_jobs(connection, group_id)
        if jobs:
            raise GroupInUseError(group.app_name, jobs)
        delete_group(connection, group_id)
        delete_api_tokens_of(connection, group_id)
        insert_event(connection, self._event(EventKind.GROUP_DELETED, group, actor, _details(group)))

    def _drain(self, connection: Connection, group_id: GroupId, wish: DrainWish) -> GroupView:
        group = self._locked(connection, group_id)
        live = self._viewed(connection, [group])[0].live_addresses
        there = find_address(group, live, wish.address)
        if there.draining != wish.draining:
            group = replace(group, drains=wished_drains(group.drains, live, there, wish, self._clock.now()))
            write_drains(connection, group.id, group.drains)
            kind = EventKind.GROUP_ADDRESS_DRAINED if wish.draining else EventKind.GROUP_ADDRESS_UNDRAINED
            details = {"app_name": group.app_name, "address": there.address}
            insert_event(connection, self._event(kind, group, wish.actor, details))
        return self._viewed(connection, [group])[0]

    def _locked(self, connection: Connection, group_id: GroupId) -> Group:
        group = get_group(connection, self._zone, group_id, lock=True)
        if group is None:
            raise NotFoundError("group", group_id)
        return group

    def _check_free(self, connection: Connection, group: Group) -> None:
        for other in find_groups(connection, self._zone, group.app_name):
            if other.id != group.id:
                raise TakenError("app_name", group.app_name, f"group {other.id}")

    def _viewed(self, connection: Connection, groups: Sequence[Group]) -> list[GroupView]:
        names = [group.app_name for group in groups if group.address_type is AddressType.REGISTERED]
        live: dict[str, list[Registration]] = {}
        if names:
            for each in list_registrations(connection, names, self._database.now_ms() - LIVE_FOR_MS):
                live.setdefault(each.app_name, []).append(each)
        return [GroupView(group, self._live_addresses(group, live.get(group.app_name, []))) for group in groups]

    def _live_addresses(self, group: Group, live: Sequence[Registration]) -> tuple[LiveAddress, ...]:
        # Who came with a token that has been revoked since gets no run.
        return live_addresses(group, [each for each in live if may_have_runs(group, each, self._database.now_ms())])

    def _event(self, kind: EventKind, group: Group, actor: str, details: Mapping[str, object]) -> NewEvent:
        return NewEvent(kind, self._clock.now(), actor, group.id, None, None, details)


def _details(group: Group) -> dict[str, object]:
    details: dict[str, object] = {"app_name": group.app_name, "title": group.title}
    details["address_type"] = group.address_type.name.lower()
    if group.address_type is AddressType.FIXED:
        details["addresses"] = list(group.addresses)
    return details


def _changed(group: Group, given: Mapping[str, Any]) -> Group:
    """The group with the given fields, each checked."""
    app_name = _app_name(given["app_name"]) if "app_name" in given else group.app_name
    title = checked_text("title", given["title"], 64, least=1) if "title" in given else group.title
    address_type = _address_type(given["address_type"]) if "address_type" in given else group.address_type
    addresses = group.addresses
    if address_type is AddressType.REGISTERED:
        if given.get("addresses"):
            raise InvalidFieldError("addresses", "executors register them; give them for address_type fixed alone")
        if group.address_type is AddressType.FIXED:
            addresses = ()
    elif "addresses" in given:
        addresses = _addresses(given["addresses"])
    elif group.address_type is AddressType.REGISTERED:
        addresses = ()
    if address_type is AddressType.FIXED and not addresses:
        raise InvalidFieldError("addresses", "at least one is required for address_type fixed")
    return replace(group, app_name=app_name, title=title, address_type=address_type, addresses=addresses)


def _app_name(text: str) -> str:
    if not _APP_NAME.fullmatch(text):
        raise InvalidFieldError(
            "app_name", f"{text[:64]!r} is not 4 to 64 letters, digits, '-', '_' or '.', with a letter or digit first"
        )
    return text


def _address_type(text: str) -> AddressType:
    if text not in ADDRESS_TYPES:
        raise InvalidFieldError("address_type", f"{text[:50]!r} is not one of {', '.join(ADDRESS_TYPES)}")
    return ADDRESS_TYPES[text]


def _addresses(texts: Sequence[str]) -> tuple[str, ...]:
    addresses = tuple(dict.fromkeys(_address(text.strip()) for text in texts))
    if len(",".join(addresses)) > _MOST_ADDRESSES_TEXT:
        raise InvalidFieldError("addresses", f"have more than {_MOST_ADDRESSES_TEXT} characters in all")
    return addresses


def _address(text: str) -> str:
    """The root of an executor: http or https, a host, perhaps a port, a path if it is mounted somewhere."""
    checked_text("addresses", text, MOST_ADDRESS, least=1)
    why = why_no_address(text)
    if why is not None:
        shown = without_credentials(text)
        raise InvalidFieldError("addresses", f"{shown!r} is not an address such as http://10.0.0.7:9999/: {why}")
    return text
