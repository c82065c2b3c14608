"""Instants as texts."""

from datetime import UTC, datetime
from typing import Final

_FIRST_MS: Final = -62_135_596_800_000
_LAST_MS: Final = 253_402_300_799_999
"""Those of the years 1 to 9999: there is no text for another one."""


def instant_text(instant_ms: int) -> str:
    """Epoch milliseconds as RFC 3339 in UTC with milliseconds: `2026-11-27T02:30:00.000Z`.

    One before the year 1 or after 9999 is told as the first or the last there is: nobody who looks at a list must be
    kept from it by one row.
    """
    instant_ms = min(max(instant_ms, _FIRST_MS), _LAST_MS)
    moment = datetime.fromtimestamp(instant_ms // 1000, UTC).replace(microsecond=instant_ms % 1000 * 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
