"""Time zones as pieces of constant offset, and the way between wall time and instants.

Wall times and instants are whole seconds here: an instant counts from 1970-01-01T00:00:00Z, a wall time counts the
seconds that a clock without a zone would count from 1970-01-01T00:00:00.
"""

from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from jobwheel.schedule.base import SECONDS_PER_DAY
from jobwheel.schedule.errors import ScheduleError

# Offsets are looked up once for a block of 2**25 s (388 days), by probes 2**18 s (3 days) apart. No zone has had two
# changes less than a week apart since 1970.
_BLOCK_BITS: Final = 25
_PROBE_S: Final = 1 << 18


class Piece(NamedTuple):
    """The offset from UTC, in seconds, for all instants from `start` up to, not including, `end`.

    Pieces touch each other. Two neighbours may have the same offset, where a block of look-ups ends.
    """

    start: int
    end: int
    offset: int


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone by its IANA name; equal names make equal zones."""

    name: str
    _info: ZoneInfo = field(compare=False, repr=False)
    # Filled as instants are asked for; two threads that fill the same block write the same value.
    _blocks: dict[int, tuple[Piece, ...]] = field(default_factory=dict, compare=False, repr=False)

    def piece_at(self, instant: int) -> Piece:
        """The piece that holds `instant`."""
        block = instant >> _BLOCK_BITS
        pieces = self._blocks.get(block)
        if pieces is None:
            pieces = self._blocks[block] = self._look_up(block)
        for piece in pieces:
            if instant < piece.end:
                return piece
        return pieces[-1]

    def highest_wall(self, instant: int) -> int:
        """The highest wall time shown up to and at `instant`.

        It is more than the wall time at `instant` during the second pass of a repeated hour.
        """
        piece = self.piece_at(instant)
        highest = instant + piece.offset
        while piece.start > instant - SECONDS_PER_DAY:
            piece = self.piece_at(piece.start - 1)
            highest = max(highest, piece.end - 1 + piece.offset)
        return highest

    def first_instant(self, wall: int) -> int:
        """The first instant at which the clock shows `wall` or more.

        That is the first pass of a repeated wall time, and the first instant after the gap for a skipped one.
        """
        # No offset reaches a day, so that the clock has not shown `wall` at any instant before this one.
        piece = self.piece_at(wall - SECONDS_PER_DAY)
        while wall - piece.offset >= piece.end:
            piece = self.piece_at(piece.end)
        return max(piece.start, wall - piece.offset)

    def _look_up(self, block: int) -> tuple[Piece, ...]:
        start = block << _BLOCK_BITS
        end = start + (1 << _BLOCK_BITS)
        pieces = []
        offset = self._offset_at(start)
        for probe in range(start, end, _PROBE_S):
            after = self._offset_at(probe + _PROBE_S)
            if after != offset:
                change = self._change_between(probe, probe + _PROBE_S, after)
                pieces.append(Piece(start, change, offset))
                start, offset = change, after
        if start < end:
            pieces.append(Piece(start, end, offset))
        return tuple(pieces)

    def _change_between(self, before: int, after: int, offset_after: int) -> int:
        while after - before > 1:
            middle = (before + after) // 2
            if self._offset_at(middle) == offset_after:
                after = middle
            else:
                before = middle
        return after

    def _offset_at(self, instant: int) -> int:
        offset = datetime.fromtimestamp(instant, self._info).utcoffset()
        assert offset is not None
        return round(offset.total_seconds())


# A memory of a pure function: the jobs of one zone share its look-ups.
@lru_cache(maxsize=64)
def load_zone(name: str) -> Zone:
    """The zone of an IANA name such as `Europe/Berlin`, from the host's data or the `tzdata` package.

    Raises:
        ScheduleError: there is no such zone (field `time_zone`).
    """
    try:
        # The zones under right/ count leap seconds, which epoch time does not.
        if name and not name.startswith("right/"):
            return Zone(name, ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise ScheduleError("time_zone", "time zone", f"{name!r} is not known; give an IANA name such as Europe/Berlin")
