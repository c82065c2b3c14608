"""Making a connection to MySQL or MariaDB, so that it can be broken off at any moment."""

import asyncio
from typing import Any, Final

_ASKED_EVERY_S: Final = 0.01


async def connect(**arguments: Any) -> Any:
    """A connection of the driver, with its arguments.

    The driver waits for the connection by `asyncio.wait_for`, which in Python 3.11 swallows a cancellation that comes
    together with it: from a server that then says nothing the greeting would be waited for without end. So the driver
    has a task of its own, which is asked again until it has ended.
    """
    import asyncmy  # noqa: PLC0415 - whether it is there shows when the database is started

    connecting = asyncio.ensure_future(asyncmy.connect(**arguments))
    try:
        return await asyncio.shield(connecting)
    except asyncio.CancelledError:
        while connecting.cancel():
            await asyncio.wait({connecting}, timeout=_ASKED_EVERY_S)
        if not connecting.cancelled() and connecting.exception() is None:
            connecting.result().close()
        raise
