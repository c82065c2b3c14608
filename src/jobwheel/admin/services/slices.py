"""How many rows are changed in one transaction by what can wait, and for how long nothing is after it."""

from collections.abc import Callable
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.kernel.clock import Clock

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

SLICE: Final = 200
"""So many rows are in the first transaction."""

PAUSE_S: Final = 0.05
"""The least pause after a slice of which something was changed."""

LEAST, MOST = 50, 1000
AIM_S: Final = 0.015
"""For about so long others wait for a slice: on SQLite one writes at a time."""

_PAUSE_FACTOR: Final = 4.0
_MOST_GROWTH: Final = 1.5


class Slices:
    """Removes, or writes, a slice at a time, as many rows as the database does in `AIM_S`, and rests between them.

    Rests are four times as long as the slice took, with the wait for its turn: a database that is slow or busy gets
    more rest. How many rows are in the next slice depends on its own work alone: waiting gets no shorter by less of it.
    """

    def __init__(self, database: Database, pause_s: float = PAUSE_S) -> None:
        self._database = database
        self._clock: Clock = database.clock
        self._pause_s = pause_s
        self._size = float(SLICE)
        self._took_s = 0.0
        self._changes = True

    @property
    def size(self) -> int:
        """How many rows to look for."""
        return int(self._size)

    async def change(
        self,
        rows: int,
        work: Callable[Concatenate[Connection, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """Have a function of the store change so many rows in a transaction; for `work` see `Database.write_batch`."""
        began_s = self._clock.monotonic()
        answer, worked_s = await self._database.write_batch(_timed, self._clock, work, args, kwargs)
        self._took_s = self._clock.monotonic() - began_s
        self._changes = rows > 0
        if rows:
            aimed = rows * AIM_S / worked_s if worked_s > 0 else MOST
            grown = max(self._size / 2, min(aimed, self._size * _MOST_GROWTH))
            self._size = max(LEAST, min(MOST, grown))
        return answer  # type: ignore[no-any-return]  # what `_timed` was given

    async def rest(self) -> None:
        """Let others work after a slice."""
        least_s = self._pause_s if self._changes else 0.0
        await self._clock.wait(max(least_s, _PAUSE_FACTOR * self._took_s))


def _timed(
    connection: Connection, clock: Clock, work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, float]:
    """The answer, and for how many seconds the work went on."""
    began_s = clock.monotonic()
    answer = work(connection, *args, **kwargs)
    return answer, clock.monotonic() - began_s
