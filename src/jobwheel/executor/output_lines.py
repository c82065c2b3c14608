"""What a child process prints, cut into lines for the run's log."""

import codecs
from collections.abc import Iterator
from typing import Final

MOST_LINE_CHARACTERS: Final = 10_000
"""A longer line goes into the log in pieces: what never breaks a line must not fill the memory."""


class OutputLines:
    """Takes bytes as they come and gives lines. Bytes that are not UTF-8 become U+FFFD."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, data: bytes) -> Iterator[str]:
        """The lines that are whole now, without their line breaks."""
        *lines, self._rest = (self._rest + self._decoder.decode(data)).split("\n")
        for line in lines:
            yield from _pieces(line.removesuffix("\r"))
        while len(self._rest) > MOST_LINE_CHARACTERS:
            yield self._rest[:MOST_LINE_CHARACTERS]
            self._rest = self._rest[MOST_LINE_CHARACTERS:]

    def end(self) -> Iterator[str]:
        """The last line, if it has no end."""
        rest = self._rest + self._decoder.decode(b"", final=True)
        self._rest = ""
        if rest:
            yield from _pieces(rest.removesuffix("\r"))


def _pieces(line: str) -> Iterator[str]:
    for at in range(0, max(1, len(line)), MOST_LINE_CHARACTERS):
        yield line[at : at + MOST_LINE_CHARACTERS]
