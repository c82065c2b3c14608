"""Instants as texts."""

from datetime import UTC, datetime


def instant_text(instant_ms: int) -> str:
    """Epoch milliseconds as RFC 3339 in UTC with milliseconds: `2026-11-27T02:30:00.000Z`."""
    moment = datetime.fromtimestamp(instant_ms // 1000, UTC).replace(microsecond=instant_ms % 1000 * 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
