"""A cron expression in a time zone."""

from dataclasses import dataclass
from typing import Final

from jobwheel.schedule.base import MS_PER_SECOND, SECONDS_PER_DAY, Language
from jobwheel.schedule.cron_expression import CronExpression
from jobwheel.schedule.words import describe_cron
from jobwheel.schedule.zones import Zone

# A clock change moves wall times by no more than this.
_REACH_S: Final = 2 * SECONDS_PER_DAY
# From here on no zone shows a year before 2200.
_END_S: Final = 7_258_118_400 + SECONDS_PER_DAY


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """Fires when the wall clock of `zone` matches `expression`, with a rule for clock changes.

    An expression whose hour field holds `*` or `/` fires at every instant whose wall time matches, in both passes of
    a repeated hour. Any other fires once for each matching wall time: in the first pass only, and for skipped wall
    times once at the first instant after the gap.
    """

    expression: CronExpression
    zone: Zone

    def __str__(self) -> str:
        return str(self.expression)

    def next_after(self, base_ms: int) -> int | None:
        """See `Schedule.next_after`; None when no instant before the year 2200 is left."""
        base = max(base_ms // MS_PER_SECOND, -_REACH_S)
        if base > _END_S:
            return None
        instant = self._next_match(base) if self.expression.is_interval else self._next_wall_time(base)
        return None if instant is None else instant * MS_PER_SECOND

    def describe(self, language: Language) -> str:
        """See `Schedule.describe`."""
        return describe_cron(self.expression, language)

    def _next_wall_time(self, base: int) -> int | None:
        """Each wall time counts once, in the order in which the clock first reaches it."""
        wall = self.expression.first_match(self.zone.highest_wall(base) + 1)
        return None if wall is None else self.zone.first_instant(wall)

    def _next_match(self, base: int) -> int | None:
        """The first instant after `base` at which the clock shows a matching wall time, piece by piece.

        No wall time from `start` up to `match` matches; a piece that begins inside that span needs no new search.
        """
        piece = self.zone.piece_at(base + 1)
        start = base + 1 + piece.offset
        match = self.expression.first_match(start)
        while match is None or match - piece.offset >= piece.end:
            instant = piece.end
            if instant > base + _REACH_S:
                # No clock change from here on leads back to wall times before `start`.
                if match is None:
                    return None
                instant = max(instant, match - _REACH_S)
            piece = self.zone.piece_at(instant)
            shown = piece.start + piece.offset
            if shown < start or (match is not None and shown > match):
                start = shown
                match = self.expression.first_match(start)
        return match - piece.offset
