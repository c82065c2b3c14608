"""A single instant, given as a date and a time."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from jobwheel.schedule.base import FIRST_YEAR, LAST_YEAR, MS_PER_SECOND, Language
from jobwheel.schedule.errors import ScheduleError
from jobwheel.schedule.zones import Zone

_FORM: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:[0-5]\d)?", re.ASCII)
_EPOCH: Final = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
_WORDS: Final = {Language.EN: "once, at {}", Language.ZH_CN: "仅在 {} 触发一次", Language.ZH_TW: "僅在 {} 觸發一次"}


@dataclass(frozen=True, slots=True)
class OnceSchedule:
    """Fires at `instant_ms` (epoch milliseconds) and never again; `zone` is the one to show it in."""

    instant_ms: int
    zone: Zone

    def next_after(self, base_ms: int) -> int | None:
        """See `Schedule.next_after`."""
        return self.instant_ms if self.instant_ms > base_ms else None

    def describe(self, language: Language) -> str:
        """See `Schedule.describe`; with the zone's name."""
        instant = self.instant_ms // MS_PER_SECOND
        wall = _EPOCH + timedelta(seconds=instant + self.zone.piece_at(instant).offset)
        return _WORDS[language].format(f"{wall:%Y-%m-%d %H:%M:%S} ({self.zone.name})")


def parse_once(text: str, zone: Zone) -> OnceSchedule:
    """The instant of `2026-12-01T02:00:00` in the zone, or of such a text with an offset (`+08:00`, `Z`).

    A wall time that a clock change skips means the first instant after the gap; one that it repeats means the first
    pass.

    Raises:
        ScheduleError: another form, no such date, or not in the years 1970 to 2199 (field `schedule_conf`).
    """
    stripped = text.strip().upper()
    match = _FORM.fullmatch(stripped)
    if match is None:
        raise _error(text, "is not of the form 2026-12-01T02:00:00, with or without an offset such as +08:00 or Z")
    try:
        parsed = datetime.fromisoformat(stripped)
    except ValueError as error:
        raise _error(text, f"is not a time: {error}") from None
    if not FIRST_YEAR <= parsed.year <= LAST_YEAR:
        raise _error(text, f"is not in the years {FIRST_YEAR}-{LAST_YEAR}")
    offset = parsed.utcoffset()
    wall = round((parsed.replace(tzinfo=UTC) - _EPOCH).total_seconds())
    instant = zone.first_instant(wall) if offset is None else wall - round(offset.total_seconds())
    if instant < 0:
        raise _error(text, f"is before {FIRST_YEAR} in UTC")
    return OnceSchedule(instant * MS_PER_SECOND, zone)


def _error(text: str, problem: str) -> ScheduleError:
    return ScheduleError("schedule_conf", "time", f"{text!r} {problem}")
