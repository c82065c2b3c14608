"""CONSISTENT_HASH: a job stays at its address while that one is live; few jobs move when another comes or goes."""

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.routing.memory import Memory

_NODES: Final = 100
"""Virtual nodes of each address."""

_Addresses = tuple[str, ...]


class Ring:
    """The virtual nodes of some addresses on a ring of 2^32.

    Hashes and keys are the reference's (`behaviour.md`, Routing), so that a job keeps its address when an installation
    changes over. Of two nodes in one place the later address has it.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        owners = {
            hash_of(f"SHARD-{address}-NODE-{node}"): index
            for index, address in enumerate(addresses)
            for node in range(_NODES)
        }
        self._count = len(addresses)
        self._points = array("L", sorted(owners))
        self._owners = array("L", [owners[point] for point in self._points])

    def order(self, key: str) -> tuple[int, ...]:
        """The addresses' indexes as the ring meets them from the key on."""
        start = bisect_left(self._points, hash_of(key))
        met: dict[int, None] = {}
        for at in range(start, start + len(self._owners)):
            met[self._owners[at % len(self._owners)]] = None
            if len(met) == self._count:
                return tuple(met)
        # An address may have lost all its nodes to others: it comes last.
        return tuple(dict.fromkeys([*met, *range(self._count)]))


class ConsistentHash:
    """The rings of the address lists and the orders of the jobs are kept; both follow from their keys alone."""

    def __init__(self) -> None:
        self._rings = Memory[_Addresses, Ring]()
        self._orders = Memory[tuple[JobId, _Addresses], tuple[int, ...]]()

    def order(self, job_id: JobId, candidates: Sequence[Candidate], now_ms: int) -> Sequence[Candidate]:
        addresses = tuple([each.address for each in candidates])
        order = self._orders.get((job_id, addresses), now_ms)
        if order is None:
            order = self._ring(addresses, now_ms).order(str(job_id))
            self._orders.put((job_id, addresses), order, 2 * len(addresses), now_ms)
        return [candidates[index] for index in order]

    def forget_unused(self, now_ms: int) -> None:
        self._rings.forget_unused(now_ms)
        self._orders.forget_unused(now_ms)

    def _ring(self, addresses: _Addresses, now_ms: int) -> Ring:
        ring = self._rings.get(addresses, now_ms)
        if ring is None:
            ring = Ring(addresses)
            self._rings.put(addresses, ring, _NODES * len(addresses), now_ms)
        return ring


def hash_of(key: str) -> int:
    """The key's place on the ring: the first four bytes of its MD5, little-endian."""
    return int.from_bytes(hashlib.md5(key.encode(), usedforsecurity=False).digest()[:4], "little")
