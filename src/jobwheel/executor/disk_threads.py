"""Threads for what may have to wait for the disk."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


class DiskThreads:
    """A few threads that do what touches the disk, so that the event loop, and with it every beat, never waits for it.

    Not those of the loop, in which host names are looked up: on a disk that hangs all of them would soon be taken, and
    the next connection to an admin would wait for one. With a single thread things are done in their order.

    Args:
        name: of the threads.
        number: how many there are at most; each is made when it is needed.
    """

    def __init__(self, name: str, number: int) -> None:
        self._pool = ThreadPoolExecutor(number, name)

    async def do(
        self, function: Callable[Arguments, Returned], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Returned:
        """Call the function in one of the threads; what it raises is raised here.

        Who is cancelled meanwhile does not wait for what is under way; what has not begun is not done.
        """
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: function(*args, **kwargs))

    def close(self) -> None:
        """Take nothing any more. What is under way goes on; each thread ends when nothing is left."""
        self._pool.shutdown(wait=False)
