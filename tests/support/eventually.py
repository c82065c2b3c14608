"""Waiting for what another task or thread brings about."""

import asyncio
from collections.abc import Callable


async def eventually(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    """Return once `condition` holds; give the loop its turns meanwhile.

    Raises:
        TimeoutError: it does not hold within the time.
    """
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop; the deadline stands above
