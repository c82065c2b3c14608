"""A group: all executors of one app name."""

from dataclasses import dataclass
from enum import IntEnum

from jobwheel.admin.domain.drain import Drain
from jobwheel.admin.domain.ids import GroupId


class AddressType(IntEnum):
    """Where a group's addresses come from."""

    REGISTERED = 0
    FIXED = 1


@dataclass(frozen=True, slots=True)
class Group:
    """A stored group. `addresses` of a registered group are those live when it was written last.

    `drains` may hold some of processes that are gone.
    """

    id: GroupId
    app_name: str
    title: str
    address_type: AddressType
    addresses: tuple[str, ...]
    updated_ms: int
    version: int
    drains: tuple[Drain, ...] = ()


@dataclass(frozen=True, slots=True)
class ExecutorLoad:
    """What an executor of ours said of itself with its last beat.

    Attributes:
        running: runs in their handlers.
        queued: runs that wait for their job's worker.
        spooled: results that no admin has yet.
        abandoned: threads that nothing could end.
    """

    running: int = 0
    queued: int = 0
    spooled: int = 0
    abandoned: int = 0


@dataclass(frozen=True, slots=True)
class Registration:
    """One address of an app name in the registry; `beat_ms` by the database's clock.

    `batch`: the executor there announced that it takes many runs in one request. Only one of ours tells its `load`.
    `draining`: it gets no new runs.
    """

    app_name: str
    address: str
    beat_ms: int
    instance_id: str | None
    batch: bool = False
    load: ExecutorLoad | None = None
    draining: bool = False


MOST_ADDRESS = 255
"""How many characters an executor's address has at most: a run's row holds no more."""

LIVE_FOR_MS = 90_000
"""An address is live for so long after its last beat (`behaviour.md`, Registry)."""

SPARED_MS = 45_000
"""After a time in which no admin could be told of beats, those who lived before have so long to beat again."""
