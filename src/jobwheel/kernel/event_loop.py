"""Which event loop there is."""

import asyncio
from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The fastest event loop there is: uvloop's where it is installed, else None for the standard one."""
    try:
        import uvloop  # noqa: PLC0415 - optional, and not needed by who only imports the SDK
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
