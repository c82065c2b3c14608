"""How many runs may be on their way to each address, and those that wait for their turn there."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from jobwheel.admin.domain.run import PendingRun

_APPROACH = 3
_WINDOW_S = 0.1
_MOST_WINDOWS = 5
_CALLED_TOGETHER = 4
_MOST_OVERBOOKED = 1000


@dataclass(slots=True)
class _Address:
    """One address: runs that took off and have not landed, those called, those parked, and how fast it takes them."""

    address: str
    in_use: int = 0
    called: int = 0
    parked: deque[PendingRun] = field(default_factory=deque)
    window_s: float = 0.0
    landed: int = 0
    landed_before: int = 0

    def land(self, count: int, now_s: float) -> None:
        self.in_use -= count
        if now_s - self.window_s >= _WINDOW_S:
            self.landed_before = self.landed if now_s - self.window_s < 2 * _WINDOW_S else 0
            self.landed, self.window_s = 0, now_s
        self.landed += count


class AddressSlots:
    """How many runs are on their way to each address; one beyond that is parked, and called when some have landed.

    On their way are those on the wire and those that took off and wait for it: three times as many as may be on the
    wire, or as many as landed within a tenth of a second if the address is that fast; within two take-offs if these
    last longer, half a second at most. So the wire is not idle while the next take-off is being committed, and the
    faster an address is, the more share a commit. A number that lasts for less than a take-off would shrink with every
    one: what lands decides how many may fly. A parked run is in nobody's
    way: a dead executor, at which every send waits for its time-out, holds up no other address. Nor do its parked runs
    fill the memory: of `most_parked` in all, an address that has its share has no place for more.
    """

    def __init__(self, limit: int, most_parked: int) -> None:
        self._limit = limit
        self._most_parked = most_parked
        self._addresses: dict[str, _Address] = {}
        # By run id: a called run's slot is kept for it.
        self._called: dict[int, _Address] = {}
        self._in_use = 0
        self._take_off_s = 0.0
        self.parked = 0
        """How many runs are parked."""

    def has_place(self, address: str) -> bool:
        """Whether another run of the address may be held at all, under way or parked."""
        return self.parked < self._most_parked or self._parked_at(address) < self._limit

    def is_relieved(self, address: str) -> bool:
        """Whether an address that had no place has a good deal of it again."""
        if self._overbooked_at(address) > self._most_overbooked() // 2:
            return False
        return self.parked <= self._most_parked // 2 or self._parked_at(address) < self._limit

    def is_overbooked(self, address: str, due_ms: int) -> bool:
        """Whether a broadcast that came due at the moment (epoch milliseconds) is to wait for the address.

        Either many more runs than it has slots are on their way there, or as many, and a run that came due before the
        broadcast is parked: broadcasts that come faster than a slow address takes them would let none of those fly.
        """
        state = self._addresses.get(address)
        if state is None:
            return False
        overbooked = state.in_use - self._allowed(state)
        waits_longer = bool(state.parked) and state.parked[0].due_ms <= due_ms
        return overbooked > self._most_overbooked() or (waits_longer and overbooked >= 0)

    def takes_broadcasts(self, address: str, due_ms: int) -> bool:
        """Whether an address that was overbooked for such a broadcast is so no more, by a good deal."""
        return self.is_relieved(address) and not self.is_overbooked(address, due_ms)

    def take(self, address: str, run: PendingRun) -> bool:
        """Take a slot of the address for the run; False if there is none."""
        state = self._at(address)
        called = self._called.pop(run.id, None)
        if called is not None:
            # Also if it goes elsewhere now: what was kept for it is free again.
            called.called -= 1
            if called is not state:
                self._drop_if_idle(called)
        if called is not state and (state.parked or state.in_use + state.called >= self._allowed(state)):
            # Nobody overtakes those that wait here already.
            return False
        state.in_use += 1
        self._in_use += 1
        return True

    def park(self, address: str, run: PendingRun) -> None:
        """Hold a run for which there is no slot until it is called."""
        self._at(address).parked.append(run)
        self.parked += 1

    def take_more(self, address: str) -> None:
        """Take a slot whether there is one or not: a broadcast goes as a whole, and a redirected run goes on."""
        self._at(address).in_use += 1
        self._in_use += 1

    def release_called(self, runs: Iterable[PendingRun]) -> None:
        """These runs had their turn: what those of them that were called have not taken is free again."""
        for run in runs if self._called else ():
            state = self._called.pop(run.id, None)
            if state is not None:
                state.called -= 1
                self._drop_if_idle(state)

    def note_take_off(self, took_s: float) -> None:
        """Runs have taken off; from the moment when they had their slots that took so long."""
        self._take_off_s += (took_s - self._take_off_s) / 4

    def slow_down(self, address: str) -> None:
        """The address did not answer: how fast it was before says nothing any more."""
        state = self._addresses.get(address)
        if state is not None:
            state.landed = state.landed_before = 0

    def clear_parked(self) -> None:
        """Forget the runs that are parked; slots stay with the sends that have them."""
        for state in list(self._addresses.values()):
            state.parked.clear()
            state.called = 0
            self._drop_if_idle(state)
        self._called.clear()
        self.parked = 0

    def give_back(self, address: str, count: int, now_s: float) -> Sequence[PendingRun]:
        """So many runs have landed; return the parked runs whose turn it is: a good number at once, for a take-off."""
        state = self._addresses[address]
        state.land(count, now_s)
        self._in_use -= count
        if not state.parked:
            self._drop_if_idle(state)
            return ()
        return self._call(state)

    def stranded(self) -> Sequence[PendingRun]:
        """Parked runs that no landing will call: nothing is on its way to their address.

        Those that were called last have gone elsewhere, or were not to fly any more.
        """
        if not self.parked:
            return ()
        idle = [state for state in self._addresses.values() if state.in_use <= 0 and not state.called and state.parked]
        return [run for state in idle for run in self._call(state)]

    def _call(self, state: _Address) -> Sequence[PendingRun]:
        allowed = self._allowed(state)
        free = min(allowed - state.in_use - state.called, len(state.parked))
        if free * _CALLED_TOGETHER < min(allowed, len(state.parked)):
            return ()
        turn = [state.parked.popleft() for _ in range(free)]
        self.parked -= free
        state.called += free
        self._called.update(dict.fromkeys([run.id for run in turn], state))
        return turn

    def _allowed(self, state: _Address) -> int:
        windows = min(_MOST_WINDOWS, max(1.0, 2 * self._take_off_s / _WINDOW_S))
        return max(self._limit * _APPROACH, int(max(state.landed, state.landed_before) * windows))

    def _at(self, address: str) -> _Address:
        state = self._addresses.get(address)
        if state is None:
            state = self._addresses[address] = _Address(address)
        return state

    def _drop_if_idle(self, state: _Address) -> None:
        if state.in_use <= 0 and not state.called and not state.parked:
            self._addresses.pop(state.address, None)

    def _most_overbooked(self) -> int:
        # A thousand addresses that hang must not have a thousand runs each.
        return _MOST_OVERBOOKED if self._in_use < self._most_parked else 0

    def _overbooked_at(self, address: str) -> int:
        state = self._addresses.get(address)
        return 0 if state is None else state.in_use - self._allowed(state)

    def _parked_at(self, address: str) -> int:
        state = self._addresses.get(address)
        return 0 if state is None else len(state.parked)
