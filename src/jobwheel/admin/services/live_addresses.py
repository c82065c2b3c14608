"""Where a group's executors are at the moment, and which of them get no new runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from jobwheel.admin.domain.drain import Drain, is_drained
from jobwheel.admin.domain.group import MOST_ADDRESS, AddressType, ExecutorLoad, Group, Registration
from jobwheel.admin.services.errors import InvalidFieldError

_DRAIN_KEPT_MS: Final = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class LiveAddress:
    """An address that gets runs, unless it is `draining`; one of a fixed list has no beat, and tells no `load`."""

    address: str
    last_beat_ms: int | None
    instance_id: str | None
    draining: bool
    load: ExecutorLoad | None = None


@dataclass(frozen=True, slots=True)
class DrainWish:
    """What a person wants of an address: that it gets no new runs, or some again."""

    address: str
    draining: bool
    actor: str


def live_addresses(group: Group, registrations: Sequence[Registration]) -> tuple[LiveAddress, ...]:
    """The addresses of a group, of which these registrations are live."""
    if group.address_type is AddressType.FIXED:
        return tuple(
            LiveAddress(address, None, None, is_drained(group.drains, address, None)) for address in group.addresses
        )
    return tuple(
        LiveAddress(
            each.address,
            each.beat_ms,
            each.instance_id,
            is_drained(group.drains, each.address, each.instance_id),
            each.load,
        )
        for each in registrations
    )


def find_address(group: Group, live: Sequence[LiveAddress], address: str) -> LiveAddress:
    """The live address that a person means.

    Raises:
        InvalidFieldError: there is none of it.
    """
    wanted = address.strip().rstrip("/")
    for each in live:
        if each.address.rstrip("/") == wanted:
            return each
    known = ", ".join(each.address for each in live) or "none"
    problem = f"{address[:MOST_ADDRESS]!r} is no live address of {group.app_name}; live: {known}"
    raise InvalidFieldError("address", problem)


def wished_drains(
    drains: Iterable[Drain], live: Sequence[LiveAddress], there: LiveAddress, wish: DrainWish, now_ms: int
) -> tuple[Drain, ...]:
    """The drains of a group after a wish for the address `there`; those that mean nobody any more are left out."""
    kept = [each for each in drains if each.address != there.address and _holds(each, live, now_ms)]
    if wish.draining:
        kept.append(Drain(there.address, there.instance_id, wish.actor, now_ms))
    return tuple(kept)


def _holds(drain: Drain, live: Sequence[LiveAddress], now_ms: int) -> bool:
    """Whether a drain means anybody who is there, or may be so again: the registry forgets after a day, too."""
    there = [each for each in live if each.address == drain.address]
    return any(each.draining for each in there) or (not there and now_ms - drain.at_ms < _DRAIN_KEPT_MS)
