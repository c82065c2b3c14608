"""Slots that users share so that none of them can have all."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

_SHARE = 4

User = TypeVar("User", bound=Hashable)


class FairSlots(Generic[User]):
    """A number of slots; a user gets another while it has less than four times as many as are free.

    So one that takes all it can get leaves a fifth of them to the others, and the next one a fifth of that. Users that
    wait get what becomes free in turn, whoever has most of it.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: Counter[User] = Counter()
        self._waiting: OrderedDict[User, deque[asyncio.Future[None]]] = OrderedDict()
        self.in_use = 0

    async def acquire(self, user: User) -> None:
        """Take a slot for the user, when it is its turn. Whoever has it calls `release`."""
        if user not in self._waiting and self._may_have(user):
            self._give(user)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(user)
            raise

    def release(self, user: User) -> None:
        """Give a slot of the user back."""
        self.in_use -= 1
        self._held[user] -= 1
        if not self._held[user]:
            del self._held[user]
        self._call()

    def _may_have(self, user: User) -> bool:
        free = self._limit - self.in_use
        return free > 0 and self._held[user] < _SHARE * free

    def _give(self, user: User) -> None:
        self.in_use += 1
        self._held[user] += 1

    def _call(self) -> None:
        while (user := next(filter(self._may_have, self._waiting), None)) is not None:
            turns = self._waiting[user]
            turn = turns.popleft()
            if turns:
                self._waiting.move_to_end(user)
            else:
                del self._waiting[user]
            if not turn.cancelled():
                self._give(user)
                turn.set_result(None)
