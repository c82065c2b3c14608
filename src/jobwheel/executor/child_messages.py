"""What an executor and the child process of a worker tell each other: JSON, a line for each message."""

import json
from typing import Final

import msgspec

from jobwheel.wire.mend import mend_json
from jobwheel.wire.messages import TriggerRequest


class Setup(msgspec.Struct, frozen=True, tag=True):
    """The first command: where modules are found, what the program is, and the handler, pickled."""

    sys_path: list[str]
    arguments: list[str]
    program: dict[str, str]
    """How to import the program's main module, in the words of `multiprocessing`; empty if nothing in it is needed."""

    handler: bytes


class Begin(msgspec.Struct, frozen=True, tag=True):
    """Run the handler."""

    request: TriggerRequest
    log_path: str


class Stop(msgspec.Struct, frozen=True, tag=True):
    """Ask the run to end by itself. Nothing if it is over."""

    log_id: int


class Leave(msgspec.Struct, frozen=True, tag=True):
    """The last command: call `destroy` and end."""


class Began(msgspec.Struct, frozen=True, tag=True):
    """The run is under way from here on: what becomes of the child now is the run's fate."""


class LogLine(msgspec.Struct, frozen=True, tag=True):
    """A line for the run's log, or several in one text."""

    level: str
    text: str


class Progress(msgspec.Struct, frozen=True, tag=True):
    """How far the run is."""

    fraction: float
    text: str


class Ended(msgspec.Struct, frozen=True, tag=True):
    """How the run ended. After a `final` one the child ends, since it could not make the handler."""

    code: int
    message: str | None
    final: bool = False


Command = Setup | Begin | Stop | Leave
Event = Began | LogLine | Progress | Ended

READ_COMMAND: Final = msgspec.json.Decoder(Command)
READ_EVENT: Final = msgspec.json.Decoder(Event)


def line_of(message: Command | Event) -> bytes:
    """The message as a line."""
    try:
        return msgspec.json.encode(message) + b"\n"
    except UnicodeEncodeError:
        # Lone surrogates: half a character that somebody cut.
        return mend_json(json.dumps(msgspec.to_builtins(message)).encode()) + b"\n"


class Messages:
    """Bytes as they come to whole messages."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are whole now."""
        self._rest += data
        if b"\n" not in data:
            return []
        *messages, self._rest = self._rest.split(b"\n")
        return [bytes(message) for message in messages]
