"""Reads of very many runs, with pauses, so that runs are sent as punctually meanwhile."""

from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, TypeVar

from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.kernel.clock import Clock

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

_SHORT_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0


class PacedReads:
    """Reads one after the other; after one that took a while there is a pause as long."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def read(
        self,
        work: Callable[Concatenate[Connection, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """Run a function of the store that only reads."""
        began_s = self._clock.monotonic()
        answer = await self._database.read(work, *args, **kwargs)
        took_s = self._clock.monotonic() - began_s
        if took_s > _SHORT_S:
            await self._clock.wait(min(took_s, _LONGEST_PAUSE_S))
        return answer
