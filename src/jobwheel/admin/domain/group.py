"""A group: all executors of one app name."""

from dataclasses import dataclass
from enum import IntEnum

from jobwheel.admin.domain.drain import Drain
from jobwheel.admin.domain.group_token import GroupToken, TokenRef
from jobwheel.admin.domain.ids import GroupId


class AddressType(IntEnum):
    """Where a group's addresses come from."""

    REGISTERED = 0
    FIXED = 1


@dataclass(frozen=True, slots=True)
class Group:
    """A stored group. `addresses` of a registered group are those live when it was written last.

    `drains` may hold some of processes that are gone, `tokens` some that are not valid any more.
    """

    id: GroupId
    app_name: str
    title: str
    address_type: AddressType
    addresses: tuple[str, ...]
    updated_ms: int
    version: int
    drains: tuple[Drain, ...] = ()
    tokens: tuple[GroupToken, ...] = ()


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
    `is_newer`: it registered as executors of dialect C do, which take `/trigger` in place of `/run`.
    `draining`: it gets no new runs. `kills_by_run`: it can end one run of a job alone. `token`: which token of a group
    it registered with; None: the installation's.
    """

    app_name: str
    address: str
    beat_ms: int
    instance_id: str | None
    batch: bool = False
    load: ExecutorLoad | None = None
    draining: bool = False
    kills_by_run: bool = False
    token: TokenRef | None = None
    is_newer: bool = False


def normal_address(address: str) -> str:
    """An address as addresses are compared: a slash at its end does not matter."""
    return address.strip().rstrip("/")


def may_have_runs(group: Group, registration: Registration, now_ms: int) -> bool:
    """Whether it registered with the installation's token, or with one of this group that is valid still."""
    return registration.token is None or any(
        registration.token == TokenRef(group.id, each.id) and each.is_valid(now_ms) for each in group.tokens
    )


MOST_ADDRESS = 255
"""How many characters an executor's address has at most: a run's row holds no more."""

LIVE_FOR_MS = 90_000
"""An address is live for so long after its last beat (`behaviour.md`, Registry)."""

SPARED_MS = 45_000
"""After a time in which no admin could be told of beats, those who lived before have so long to beat again."""
