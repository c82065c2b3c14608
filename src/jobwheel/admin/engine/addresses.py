"""The live addresses of every group, in memory."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jobwheel.admin.domain.group import LIVE_FOR_MS, SPARED_MS, Registration
from jobwheel.admin.domain.group_token import TokenRef
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.engine.figures import ExecutorFigures
from jobwheel.admin.engine.group_credentials import GroupCredentials
from jobwheel.admin.store import registry
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.registry import GroupAddresses
from jobwheel.kernel.secret import Secret

_FIXED_OUT_MS = 30_000
_FIND_EVERY_MS = 100


@dataclass(frozen=True, slots=True)
class Candidate:
    """An address that may get a run. `instance_id` is set for executors of ours; `batch` if it takes `/runBatch`."""

    address: str
    instance_id: str | None
    batch: bool = False


class AddressBook:
    """What the registry holds, read again each second and after each local change.

    An address that is being drained is none that may get a run.

    An address that was unreachable is out until its next beat; one of a fixed list, which never beats, for 30 s.

    While the database is away nobody can beat. So who lived when it went has some time to beat again when it is back;
    otherwise every run of the first half minute after a longer outage would find no live address.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._credentials = GroupCredentials()
        self._groups: dict[GroupId, GroupAddresses] = {}
        self._gone: set[GroupId] = set()
        self._newer: frozenset[str] = frozenset()
        self._out: dict[str, int] = {}
        self._left: dict[tuple[str, str], int] = {}
        self._written_again: dict[tuple[str, str], int] = {}
        # When the registry was last read, whether it could not be since, and who is spared for how long.
        self._read_ms: int | None = None
        self._is_away = False
        self._spared_ms = 0
        self._spared_until_ms = 0
        self._reading = asyncio.Lock()
        self.changed = False
        """Whether the live addresses of any group have changed; for its owner to take back."""
        # What is asked for each run is found anew after each change, and ten times a second.
        self._live: dict[GroupId, tuple[Candidate, ...]] = {}
        self._found_ms = 0

    async def refresh(self) -> None:
        """Read the registry anew. One after the other: what was read first must not come last."""
        async with self._reading:
            await self._read()

    async def _read(self) -> None:
        try:
            groups = await self._database.read(registry.load_addresses, self._database.now_ms() - self._away_ms())
        except Exception:
            self._is_away = True
            raise
        now_ms = self._database.now_ms()
        if self._is_away and self._read_ms is not None:
            self._spared_ms, self._spared_until_ms = now_ms - self._read_ms, now_ms + SPARED_MS
        self._read_ms, self._is_away = now_ms, False
        before = {group_id: _addresses(group) for group_id, group in self._groups.items()}
        self._groups = {group.group_id: group for group in groups}
        self._credentials.read(groups)
        self._newer = frozenset(each.address for group in groups for each in group.registrations if each.is_newer)
        self._live.clear()
        keep_ms = now_ms - LIVE_FOR_MS
        self._out = {address: out_ms for address, out_ms in self._out.items() if out_ms > keep_ms}
        self._left = {key: left_ms for key, left_ms in self._left.items() if left_ms > keep_ms}
        self._note_who_left(groups)
        if before != {group_id: _addresses(group) for group_id, group in self._groups.items()}:
            self.changed = True

    def _note_who_left(self, groups: Sequence[GroupAddresses]) -> None:
        """See who of those that left is in the registry: with a later beat, which came to another node, or again."""
        registered = [each for group in groups if not group.fixed for each in group.registrations]
        found = {(each.app_name, each.address): each.beat_ms for each in registered}
        there = {key: left_ms for key, left_ms in self._left.items() if key in found}
        self._written_again = {key: left_ms for key, left_ms in there.items() if found[key] <= left_ms}
        for key in there.keys() - self._written_again.keys():
            del self._left[key]

    async def remove_left(self) -> None:
        """Take out of the registry whom a beat has put there again that was under way when it left.

        Other nodes, which have not heard that it left, would send to it until that beat is too old.
        """
        if self._written_again:
            await self._database.write(registry.remove_left, self._written_again)

    async def learn(self, group_ids: Iterable[GroupId]) -> None:
        """Make sure that groups which jobs are of are known, however new they are.

        One that is not found has been deleted, and is not looked for again: ids are given once.
        """
        unknown = set(group_ids) - self._groups.keys() - self._gone
        if unknown:
            await self.refresh()
            self._gone |= unknown - self._groups.keys()

    def candidates(self, group_id: GroupId) -> Sequence[Candidate]:
        """The group's live addresses, sorted; a fixed list in its own order."""
        now_ms = self._database.now_ms()
        if now_ms - self._found_ms >= _FIND_EVERY_MS:
            self._live.clear()
            self._found_ms = now_ms
        live = self._live.get(group_id)
        if live is None:
            live = self._live[group_id] = self._find_live(group_id, now_ms)
        return live

    def is_out(self, group_id: GroupId, address: str) -> bool:
        """Whether an address that was a candidate has been found unreachable since."""
        return address in self._out and all(each.address != address for each in self.candidates(group_id))

    def _find_live(self, group_id: GroupId, now_ms: int) -> tuple[Candidate, ...]:
        group = self._groups.get(group_id)
        if group is None:
            return ()
        return tuple(
            Candidate(each.address, each.instance_id, each.batch)
            for each in group.registrations
            if self._is_live(each, now_ms, fixed=group.fixed)
        )

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

    def figures(self) -> tuple[ExecutorFigures, ...]:
        """What executors of ours told of themselves. Groups that share an app name tell it once."""
        told = {
            (group.app_name, each.address): each.load
            for group in self._groups.values()
            for each in group.registrations
            if each.load is not None
        }
        return tuple(ExecutorFigures(app_name, address, load) for (app_name, address), load in told.items())

    def token_of(self, app_name: str, token: str) -> TokenRef | None:
        """The valid token of the app name's group that this is; None: it is none of its."""
        return self._credentials.find(app_name, token, self._database.now_ms())

    def token_for(self, app_name: str, address: str, installation: Secret | None) -> Secret | None:
        """The token that an address of the app name is sent: its group's if it came with that; None: none at all."""
        return self._credentials.choose(app_name, address, installation, self._database.now_ms())

    def is_newer(self, address: str) -> bool:
        """Whether an address registered as executors of dialect C do."""
        return address in self._newer

    def mark_unreachable(self, address: str) -> None:
        """Take an address out until it beats again."""
        self._out[address] = self._database.now_ms()
        self._live.clear()

    def remove(self, app_name: str, address: str) -> None:
        """An address leaves the registry: it gets nothing from this moment on, whatever is read of it meanwhile."""
        self._left[app_name, address] = self._database.now_ms()
        self._live.clear()

    def left_ms(self, app_name: str, address: str) -> int | None:
        """When an address left the registry, by the database's clock; None if it has not, as far as is remembered."""
        return self._left.get((app_name, address))

    def welcome(self, app_name: str, address: str, left_ms: int | None, beat_ms: int) -> None:
        """An address has registered anew, at `beat_ms` by the database's clock; it had left at `left_ms` when it did.

        Has it left, or was it unreachable, since then, it stays out.
        """
        if self.left_ms(app_name, address) == left_ms:
            self._left.pop((app_name, address), None)
            self._live.clear()
        if self._out.get(address, beat_ms) < beat_ms:
            del self._out[address]
            self._live.clear()

    def has_left(self, group_id: GroupId, address: str) -> bool:
        """Whether an address that was a candidate has left the registry since."""
        group = self._groups.get(group_id)
        return group is not None and not group.fixed and (group.app_name, address) in self._left

    def is_draining(self, group_id: GroupId, address: str) -> bool:
        """Whether an address gets no new runs because an operator drains it."""
        group = self._groups.get(group_id)
        return group is not None and any(each.draining and each.address == address for each in group.registrations)

    def _away_ms(self) -> int:
        """How long nobody could beat, as far as it still matters."""
        now_ms = self._database.now_ms()
        if self._is_away and self._read_ms is not None:
            return now_ms - self._read_ms
        return self._spared_ms if now_ms < self._spared_until_ms else 0

    def _is_live(self, each: Registration, now_ms: int, *, fixed: bool) -> bool:
        out_ms = self._out.get(each.address)
        if each.draining:
            return False
        if fixed:
            return out_ms is None or now_ms - out_ms >= _FIXED_OUT_MS
        if (each.app_name, each.address) in self._left:
            return False
        return now_ms - each.beat_ms < LIVE_FOR_MS + self._away_ms() and (out_ms is None or each.beat_ms > out_ms)


def _addresses(group: GroupAddresses) -> tuple[str, ...]:
    return tuple(each.address for each in group.registrations)
