"""Runs of a lane that wait for one address or group."""

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from jobwheel.admin.engine.lanes import Lane

Key = TypeVar("Key")
Item = TypeVar("Item")


@dataclass(slots=True)
class Line(Generic[Key, Item]):
    """What waits for `key` in a lane, and its workers: those with a request, and all."""

    lane: Lane
    key: Key
    items: deque[Item] = field(default_factory=deque)
    busy: int = 0
    workers: int = 0
