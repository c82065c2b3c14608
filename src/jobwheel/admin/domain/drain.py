"""Draining: an address of a group that gets no new runs, as an operator asked."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Drain:
    """An operator's wish, for the process that was at the address then: another one there is not meant.

    `instance_id` None: an executor that tells no id, or an address of a fixed list, which holds until it is taken back.
    `at_ms` by this host's clock.
    """

    address: str
    instance_id: str | None
    actor: str
    at_ms: int


def is_drained(drains: Iterable[Drain], address: str, instance_id: str | None) -> bool:
    """Whether this process at this address is to get no new runs."""
    return any(each.address == address and each.instance_id == instance_id for each in drains)
