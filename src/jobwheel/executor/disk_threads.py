"""Threads for what may have to wait for the disk."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
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

        Raises:
            RuntimeError: this is closed, or the system gives no thread; nothing was done, nor will be.
        """
        done: Future[Returned] = Future()

        def call() -> None:
            if done.set_running_or_notify_cancel():
                try:
                    done.set_result(function(*args, **kwargs))
                except BaseException as error:  # noqa: BLE001 - handed to who waits
                    done.set_exception(error)

        try:
            self._pool.submit(call)
        except RuntimeError:
            # A pool that gets no thread keeps what it was given, for the next one that it gets.
            if done.cancel():
                raise
        return await asyncio.wrap_future(done)

    def close(self) -> None:
        """Take nothing any more. What is under way goes on; each thread ends when nothing is left."""
        self._pool.shutdown(wait=False)
