"""The live addresses of every group, in memory."""

from dataclasses import dataclass, replace

from jobwheel.admin.domain.group import LIVE_FOR_MS
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.store import registry
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.registry import GroupAddresses

_FIXED_OUT_MS = 30_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """An address that may get a run. `instance_id` is set for executors of ours."""

    address: str
    instance_id: str | None


class AddressBook:
    """What the registry holds, read again each second and after each local change.

    An address that was unreachable is out until its next beat; one of a fixed list, which never beats, for 30 s.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._groups: dict[GroupId, GroupAddresses] = {}
        self._out: dict[str, int] = {}

    async def refresh(self) -> bool:
        """Read the registry anew; whether the live addresses of any group changed."""
        now_ms = self._database.now_ms()
        groups = await self._database.read(registry.load_addresses, now_ms)
        before = {group_id: _addresses(group) for group_id, group in self._groups.items()}
        self._groups = {group.group_id: group for group in groups}
        keep_ms = now_ms - LIVE_FOR_MS
        self._out = {address: out_ms for address, out_ms in self._out.items() if out_ms > keep_ms}
        return before != {group_id: _addresses(group) for group_id, group in self._groups.items()}

    def candidates(self, group_id: GroupId) -> list[Candidate]:
        """The group's live addresses, sorted; a fixed list in its own order."""
        group = self._groups.get(group_id)
        if group is None:
            return []
        now_ms = self._database.now_ms()
        return [
            Candidate(each.address, each.instance_id)
            for each in group.registrations
            if self._is_live(each.address, each.beat_ms, now_ms, fixed=group.fixed)
        ]

    def app_name(self, group_id: GroupId) -> str | None:
        """The group's app name, None for a group that is gone."""
        group = self._groups.get(group_id)
        return None if group is None else group.app_name

    def is_fixed(self, group_id: GroupId) -> bool:
        group = self._groups.get(group_id)
        return group is not None and group.fixed

    def all_addresses(self, group_id: GroupId) -> list[str]:
        """Every address that belongs to the group, whether it can be reached or not."""
        group = self._groups.get(group_id)
        return [] if group is None else [each.address for each in group.registrations]

    def mark_unreachable(self, address: str) -> None:
        """Take an address out until it beats again."""
        self._out[address] = self._database.now_ms()

    def remove(self, app_name: str, address: str) -> None:
        """An address left the registry: it gets nothing from this moment on."""
        for group_id, group in list(self._groups.items()):
            if group.app_name == app_name and not group.fixed:
                left = tuple(each for each in group.registrations if each.address != address)
                self._groups[group_id] = replace(group, registrations=left)

    def _is_live(self, address: str, beat_ms: int, now_ms: int, *, fixed: bool) -> bool:
        out_ms = self._out.get(address)
        if fixed:
            return out_ms is None or now_ms - out_ms >= _FIXED_OUT_MS
        return now_ms - beat_ms < LIVE_FOR_MS and (out_ms is None or beat_ms > out_ms)


def _addresses(group: GroupAddresses) -> tuple[str, ...]:
    return tuple(each.address for each in group.registrations)
