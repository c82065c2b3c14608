"""What servers of the tests do when they close."""

import asyncio
import sys

from jobwheel.kernel.clock import SystemClock
from jobwheel.kernel.fake_clock import settle

_CLOCK = SystemClock()
# The accepting task, the transport's beginning, the task that serves it.
_TURNS = 10
_CLOSED_WITHIN_S = 5


async def all_accepted() -> None:
    """Let connections that were just accepted become known to whoever serves them.

    One that nobody knows stays open when the server closes, and is found by the collector in somebody else's test.
    """
    await settle(_TURNS)


async def all_closed(server: asyncio.Server) -> None:
    """Return once a server that was closed, and has aborted the connections that it knows, has none left.

    One whose handshake goes on is known to nobody: it ends when its client does.
    """
    async with asyncio.timeout(_CLOSED_WITHIN_S):
        if sys.version_info >= (3, 12):
            await server.wait_closed()
        else:
            while getattr(server, "_active_count", 0):
                await _CLOCK.wait(0.005)
