"""The installation's zone, in which the reference's DATETIME columns are kept."""

import functools
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

_KEPT = 256


class InstallationZone:
    """Turns epoch milliseconds into wall time of one zone and back.

    The zone is written to the database at the first start and never taken from the host afterwards (`storage.md`).
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._zone = ZoneInfo(name)
        # Runs are written in bursts of the same few seconds; a conversion costs more than the rest of a row.
        self._recent: dict[int, str] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # In another process it is made once, and remembers what it has converted.
        return _known_zone, (self.name,)

    def to_wall(self, instant_ms: int) -> datetime:
        """Wall time without a zone and without a fraction of a second."""
        return datetime.fromtimestamp(instant_ms // 1000, self._zone).replace(tzinfo=None)

    def to_wall_text(self, instant_ms: int) -> str:
        """The same as a text `yyyy-MM-dd HH:mm:ss`, for statements that are passed as text."""
        second = instant_ms // 1000
        text = self._recent.get(second)
        if text is None:
            if len(self._recent) >= _KEPT:
                self._recent.clear()
            text = self._recent[second] = self.to_wall(instant_ms).isoformat(" ", timespec="seconds")
        return text

    def last_of(self, wall: datetime) -> int:
        """Epoch milliseconds of a wall time; of a repeated hour the second pass."""
        return int(wall.replace(tzinfo=self._zone, fold=1).astimezone(UTC).timestamp() * 1000)

    def from_wall(self, wall: datetime) -> int:
        """Epoch milliseconds of a wall time that a Java admin wrote; of a repeated hour the first pass."""
        try:
            return int(wall.replace(tzinfo=self._zone).astimezone(UTC).timestamp() * 1000)
        except OverflowError:
            # At the very ends of the calendar, where a zone leads beyond them.
            return int(wall.replace(tzinfo=UTC).timestamp() * 1000)


@functools.cache
def _known_zone(name: str) -> InstallationZone:
    return InstallationZone(name)
