"""What an admin and the process that writes its SQLite database say to each other: lengths and pickles.

Both are the same program and of one user, and nobody else has the socket.
"""

import pickle
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

_LENGTH = struct.Struct("!Q")


class Command(Enum):
    """What the writing process is to do: a transaction; nothing, until it is released."""

    RUN = "run"
    HOLD = "hold"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Order:
    """One of them, numbered for its answer. `load` gives a transaction's function and arguments."""

    command: Command
    number: int
    packed: bytes = b""

    def load(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The function, found by its name, and its arguments after the connection."""
        return cast("tuple[Callable[..., Any], tuple[Any, ...]]", pickle.loads(self.packed))  # noqa: S301 - our own


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of an order."""

    number: int
    answer: Any = None
    error: BaseException | None = None


class Frames:
    """Puts frames together from what a socket gives, piece by piece."""

    def __init__(self) -> None:
        self._data = bytearray()

    def orders(self, data: bytes) -> Iterator[Order]:
        return cast("Iterator[Order]", self._objects(data))

    def answers(self, data: bytes) -> Iterator[Answered]:
        return (each for answers in self._objects(data) for each in cast("list[Answered]", answers))

    def _objects(self, data: bytes) -> Iterator[Any]:
        self._data += data
        begin = 0
        while len(self._data) >= begin + _LENGTH.size:
            end = begin + _LENGTH.size + _LENGTH.unpack_from(self._data, begin)[0]
            if len(self._data) < end:
                break
            frame = bytes(memoryview(self._data)[begin + _LENGTH.size : end])
            yield pickle.loads(frame)  # noqa: S301 - our own
            begin = end
        del self._data[:begin]


def encode_order(
    command: Command, number: int, work: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
) -> bytes:
    """The frame of an order."""
    packed = b"" if work is None else pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
    return _frame(Order(command, number, packed))


def encode_answers(answers: Iterable[Answered]) -> bytes:
    """The frame of what came of orders."""
    return _frame([_portable(each) for each in answers])


def _portable(answered: Answered) -> Answered:
    """The same, if it can be sent; else an error that says so."""
    if answered.error is None:
        return answered
    try:
        pickle.loads(pickle.dumps(answered.error))  # noqa: S301 - our own
    except Exception:  # noqa: BLE001 - errors of libraries may need more than their text to be made again
        return Answered(answered.number, error=RuntimeError(repr(answered.error)))
    return answered


def _frame(value: object) -> bytes:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(data)) + data
