"""The process that writes an admin's batches to its SQLite database: `python -m … DESCRIPTOR PARENT PATH`.

An interpreter runs one thread at a time, and the admin's has requests to send. So the batches of the hot path are put
together and written here, on a core of their own. Frames go over a socket, see `sqlite_frames`; they are answered in
their order. This process has no life of its own: it ends with its parent, however that ends.
"""

import contextlib
import ctypes
import functools
import gc
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from jobwheel.admin.store.sqlite_checkpoints import LOG_PAGES_BESIDE, Checkpoints
from jobwheel.admin.store.sqlite_commits import MOST_IN_ONE_COMMIT, Work, commit
from jobwheel.admin.store.sqlite_connections import open_engine
from jobwheel.admin.store.sqlite_frames import Answered, Command, Frames, Order, encode_answers
from jobwheel.admin.store.sqlite_transactions import Transactions
from jobwheel.kernel.memory import share_arenas

_PR_SET_PDEATHSIG = 1
_CHUNK = 1 << 20


class _Inbox:
    """What the parent has sent and was not done yet."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._frames = Frames()
        self._orders: deque[Order] = deque()

    def works(self) -> list[Order]:
        """The next transactions, waited for; none if something else is to be done first.

        Raises:
            EOFError: the parent is gone, or wants nothing any more.
        """
        self._fill()
        works: list[Order] = []
        while self._orders and self._orders[0].command is Command.RUN and len(works) < MOST_IN_ONE_COMMIT:
            works.append(self._orders.popleft())
        return works

    def next(self) -> Order:
        """What is to be done now."""
        self._fill()
        return self._orders.popleft()

    def wait_for(self, command: Command) -> None:
        """Take the next order of this kind; transactions that came before it stay."""
        while True:
            for order in self._orders:
                if order.command is command:
                    self._orders.remove(order)
                    return
            self._receive()

    def _fill(self) -> None:
        while not self._orders:
            self._receive()

    def _receive(self) -> None:
        data = self._channel.recv(_CHUNK)
        if not data:
            raise EOFError
        self._orders.extend(self._frames.orders(data))


def serve(channel: socket.socket, path: Path) -> None:
    """Write what the parent sends until it closes the channel."""
    inbox = _Inbox(channel)
    try:
        database = Transactions(open_engine(path, LOG_PAGES_BESIDE))
    except Exception as error:  # noqa: BLE001 - whoever waits is told
        with contextlib.suppress(EOFError):
            order = inbox.next()
            channel.sendall(encode_answers([Answered(order.number, error=error)]))
        return
    # What is there now stays; without it a full collection looks at what came since alone.
    gc.collect()
    gc.freeze()
    checkpoints = Checkpoints(path)
    with contextlib.closing(database), contextlib.closing(checkpoints), contextlib.suppress(EOFError):
        while True:
            orders = inbox.works()
            if orders:
                channel.sendall(encode_answers(_committed(database, orders)))
                checkpoints.note(database.changes)
            else:
                held = inbox.next()
                channel.sendall(encode_answers([Answered(held.number)]))
                inbox.wait_for(Command.RELEASE)


def _committed(database: Transactions, orders: list[Order]) -> Iterator[Answered]:
    works = [Work(functools.partial(_run, order)) for order in orders]
    commit(database, works)
    return (Answered(order.number, work.answer, work.error) for order, work in zip(orders, works, strict=True))


def _run(order: Order, connection: object) -> object:
    # Its names are looked up only here, where an error is that of this transaction alone.
    work, arguments = order.load()
    return work(connection, *arguments)


def _end_with(parent: int) -> None:
    """Be killed when the parent dies, also while a transaction goes on: the next admin must not wait for it."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


def main() -> None:
    descriptor, parent, path = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    # Ctrl-C and a service's stop reach the whole group; the parent ends this process when it has nothing more to write.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _end_with(parent)
    share_arenas()
    with socket.socket(fileno=descriptor) as channel, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        serve(channel, path)


if __name__ == "__main__":
    main()
