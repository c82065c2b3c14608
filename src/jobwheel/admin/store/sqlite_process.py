"""The admin's side of the process that writes its SQLite database's batches."""

import asyncio
import contextlib
import itertools
import os
import socket
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from jobwheel.admin.store.errors import DatabaseUnusableError, UnknownCommitError
from jobwheel.admin.store.sqlite_frames import Answered, Command, Frames, encode_order
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

Answer = TypeVar("Answer")

_END_WAIT_S: Final = 10.0
_HANGS_AFTER_S: Final = 60.0
"""What comes before a hold is done, or refused since a tool has the file, long before that."""
_MOST_TOGETHER: Final = 32
_DESCRIPTORS_OF_A_START: Final = 10


class SqliteProcess:
    """Has transactions written by a process of its own, in the order in which they come.

    It is started with the first transaction, and again if it has died: what it was given then has an unknown end. One
    that hangs is killed when somebody else wants to write, as a node's heartbeat does each few seconds.

    Args:
        path: the database.
        kept_open: a descriptor that the process keeps open as long as it lives: the file lock that shuts others out.
    """

    def __init__(self, path: Path, kept_open: int | None) -> None:
        self._path = path
        self._kept_open = kept_open
        self._numbers = itertools.count(1)
        self._starting: asyncio.Task[_Channel] | None = None
        self._is_stopped = False
        self._process: asyncio.subprocess.Process | None = None
        self._channel: _Channel | None = None
        self._others: deque[tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]] = deque()
        self._holding: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The process, if there is one."""
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Start the process, if it is not there. It opens the database while others already do something else.

        Raises:
            DatabaseUnusableError: the system has nothing for it, or it was stopped.
        """
        await self._open_channel()

    async def stop(self) -> None:
        """Let it finish what it was given, and end it, for good."""
        self._is_stopped = True
        if self._starting is not None:
            # Nobody would end what comes of it.
            await asyncio.wait({self._starting})
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        await self._stop_process()

    async def run(self, work: Callable[..., Any], *args: Any) -> Any:
        """Run a function of a module in a transaction there; return its answer once it is committed.

        Raises:
            UnknownCommitError: the process died meanwhile.
            DatabaseUnusableError: it had died, and cannot be started for now.
            Exception: what the function raised; it has changed nothing.
        """
        channel = await self._open_channel()
        return await channel.ask(next(self._numbers), Command.RUN, (work, args))

    async def without(self, write: Callable[[], Awaitable[Answer]]) -> Answer:
        """Let somebody else write: meanwhile the process begins nothing. Those who come at once share the time."""
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._others.append((write, done))
        if self._holding is None:
            self._holding = asyncio.create_task(self._let_others_write())
        return await done

    async def _let_others_write(self) -> None:
        try:
            while self._others:
                together = [self._others.popleft() for _ in range(min(len(self._others), _MOST_TOGETHER))]
                held = await self._begin_hold()
                await asyncio.gather(*(_settle(write, done) for write, done in together))
                if held is not None:
                    held.tell(next(self._numbers), Command.RELEASE)
        finally:
            self._holding = None

    async def _begin_hold(self) -> "_Channel | None":
        """The process that begins nothing until it is released; None if there is none that could."""
        channel = self._channel
        if channel is None or channel.is_closed:
            return None
        asked = asyncio.ensure_future(channel.ask(next(self._numbers), Command.HOLD))
        # In two halves: after this process was frozen its time is up before it looks what was answered meanwhile.
        if not (await _is_done(asked, _HANGS_AFTER_S / 2) or await _is_done(asked, _HANGS_AFTER_S / 2)):
            self._end_hanging(channel)
        try:
            await asked
        except UnknownCommitError:
            return None
        except Exception as error:  # noqa: BLE001 - whatever kept it from its work, it writes nothing
            log.warning("database.process_not_held", error=repr(error))
            return None
        return channel

    def _end_hanging(self, channel: "_Channel") -> None:
        """Kill the process, so that whoever waits for it is told. A stop under way does so by itself."""
        if channel is self._channel and self._process is not None:
            log.error("database.process_hangs", pid=self._process.pid, waited_s=_HANGS_AFTER_S)
            self._process.kill()

    async def _open_channel(self) -> "_Channel":
        if self._channel is not None and not self._channel.is_closed:
            return self._channel
        if self._is_stopped:
            raise DatabaseUnusableError(str(self._path), "its process was stopped")
        if self._starting is None:
            self._starting = asyncio.create_task(self._start_process())
        # Whoever waits may be told to stop. A start that is broken off would leave what it has started to nobody.
        return await asyncio.shield(self._starting)

    async def _start_process(self) -> "_Channel":
        try:
            await self._stop_process()
            self._channel = await self._connected_process()
        except OSError as error:
            reason = f"the process that writes to it cannot be started: {error.strerror or error}"
            raise DatabaseUnusableError(str(self._path), reason) from error
        finally:
            self._starting = None
        return self._channel

    async def _connected_process(self) -> "_Channel":
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                _check_room(theirs.fileno())
                kept = [theirs.fileno()] + ([] if self._kept_open is None else [self._kept_open])
                arguments = [str(theirs.fileno()), str(os.getpid()), str(self._path)]
                # -P: what lies in the current directory is not ours to import.
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    *("-P", "-m", "jobwheel.admin.store.sqlite_worker", *arguments),
                    pass_fds=kept,
                    stdin=asyncio.subprocess.DEVNULL,
                )
            loop = asyncio.get_running_loop()
            _, channel = await loop.create_connection(lambda: _Channel(str(self._path)), sock=ours)
        except BaseException:
            # A process that is there already ends with it.
            ours.close()
            raise
        return channel

    async def _stop_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            async with asyncio.timeout(_END_WAIT_S):
                await process.wait()
        except TimeoutError:
            log.warning("database.process_hangs", pid=process.pid, waited_s=_END_WAIT_S)
            process.kill()
            await process.wait()
        if process.returncode:
            log.error("database.process_ended", pid=process.pid, status=process.returncode)


def _check_room(descriptor: int) -> None:
    """See whether there are enough descriptors to start a process: uvloop leaves some open when it misses one.

    Raises:
        OSError: there are not.
    """
    with contextlib.ExitStack() as spare:
        for _ in range(_DESCRIPTORS_OF_A_START):
            spare.callback(os.close, os.dup(descriptor))


class _Channel(asyncio.Protocol):
    """The socket to one start of the process, and who waits for its answers."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._frames = Frames()
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be said any more, and nothing will be answered."""
        return self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        for answered in self._frames.answers(data):
            self._resolve(answered)

    def connection_lost(self, _: Exception | None) -> None:
        waiting, self._waiting = self._waiting, {}
        for done in waiting.values():
            if not done.done():
                done.set_exception(UnknownCommitError(self._where))

    async def ask(
        self, number: int, command: Command, work: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
    ) -> Any:
        frame = encode_order(command, number, work)
        if self.is_closed:
            raise UnknownCommitError(self._where)
        done = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._transport.write(frame)
        return await done

    def tell(self, number: int, command: Command) -> None:
        """Give an order that has no answer; to a process that has died meanwhile, none."""
        # uvloop raises where nobody listens any more.
        if not self.is_closed:
            self._transport.write(encode_order(command, number))

    def close(self) -> None:
        """Say that nothing more comes; what is under way is finished there, and nobody waits for it any more."""
        self._transport.close()

    def _resolve(self, answered: Answered) -> None:
        done = self._waiting.pop(answered.number)
        if done.done():
            return
        if answered.error is None:
            done.set_result(answered.answer)
        else:
            done.set_exception(answered.error)


async def _is_done(task: "asyncio.Task[Any]", within_s: float) -> bool:
    await asyncio.wait({task}, timeout=within_s)
    return task.done()


async def _settle(write: Callable[[], Awaitable[Any]], done: "asyncio.Future[Any]") -> None:
    try:
        answer = await write()
    except BaseException as error:  # noqa: BLE001 - whoever waits is told
        if not done.done():
            done.set_exception(error)
    else:
        if not done.done():
            done.set_result(answer)
