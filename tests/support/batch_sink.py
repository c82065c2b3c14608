"""A taker of batches that fails on order."""

import asyncio
from collections.abc import Sequence


class BadItemError(Exception):
    pass


class OutageError(Exception):
    pass


class Sink:
    """Takes batches; fails as it is told to, and waits at `gate` if there is one."""

    gate: asyncio.Event | None

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.tries: list[list[int]] = []
        self.rejected: list[tuple[int, str]] = []
        self.bad: set[int] = set()
        self.outage = False
        self.failures_to_come = 0
        self.gate = None

    @property
    def flushed(self) -> list[int]:
        return [item for batch in self.batches for item in batch]

    async def flush(self, items: Sequence[int]) -> None:
        self.tries.append(list(items))
        if self.gate is not None:
            await self.gate.wait()
        if self.outage:
            raise OutageError("database is away")
        if self.failures_to_come:
            self.failures_to_come -= 1
            raise BadItemError("a passing failure")
        for item in items:
            if item in self.bad:
                raise BadItemError(f"{item} is bad")
        self.batches.append(list(items))

    def reject(self, item: int, error: Exception) -> None:
        self.rejected.append((item, str(error)))
