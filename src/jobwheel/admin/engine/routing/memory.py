"""What a strategy remembers from run to run, within bounds."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MOST_REMEMBERED: Final = 200_000
"""How much one strategy remembers: the sum of the sizes of what it holds, some ten megabytes."""

_FORGET_AFTER_MS: Final = 24 * 3600 * 1000


@dataclass(slots=True)
class _Entry(Generic[Value]):
    value: Value
    size: int
    used_ms: int


class Memory(Generic[Key, Value]):
    """Values by key; what has not been used for longest goes first when there is too much, and after a day in any case.

    Sizes are what the user counts by, such as addresses. One value alone may exceed the bound.
    """

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._most = most
        self._size = 0
        self._entries: OrderedDict[Key, _Entry[Value]] = OrderedDict()

    def __len__(self) -> int:
        """How many values are held."""
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def get(self, key: Key, now_ms: int) -> Value | None:
        """The value, which counts as used now."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.used_ms = now_ms
        self._entries.move_to_end(key)
        return entry.value

    def put(self, key: Key, value: Value, size: int, now_ms: int) -> None:
        """Hold a value, in the place of an older one."""
        before = self._entries.pop(key, None)
        self._size += size - (0 if before is None else before.size)
        self._entries[key] = _Entry(value, size, now_ms)
        while self._size > self._most and len(self._entries) > 1:
            self._drop_oldest()

    def remove(self, key: Key) -> None:
        """Hold it no more."""
        entry = self._entries.pop(key, None)
        self._size -= 0 if entry is None else entry.size

    def forget_unused(self, now_ms: int) -> None:
        """Drop what has not been used for a day."""
        while self._entries and next(iter(self._entries.values())).used_ms < now_ms - _FORGET_AFTER_MS:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, entry = self._entries.popitem(last=False)
        self._size -= entry.size
