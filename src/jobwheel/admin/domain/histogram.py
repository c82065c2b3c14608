"""How long things took, in buckets of fixed bounds: of any number of runs a few numbers, which add up."""

import json
import math
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final


def _bounds() -> tuple[int, ...]:
    """1, 2, 3, then four to each doubling, up to 49 days."""
    return (1, 2, 3, *((4 + quarter) << power for power in range(30) for quarter in range(4)))


BOUNDS: Final = _bounds()
"""Bucket i holds the milliseconds from the bound before (included, 0 for the first) to bound i (not included).

A bucket is at most a quarter as wide as its lower bound. What is longer than the last bound is in one more bucket.
"""


@dataclass(slots=True)
class Histogram:
    """Counts by bucket, and the largest value itself, in milliseconds."""

    counts: dict[int, int] = field(default_factory=dict)
    most_ms: int = 0

    @property
    def count(self) -> int:
        """How many values there are."""
        return sum(self.counts.values())

    def add(self, bucket: int, count: int, most_ms: int) -> None:
        """Add values of one bucket, of which `most_ms` is the largest."""
        self.counts[bucket] = self.counts.get(bucket, 0) + count
        self.most_ms = max(self.most_ms, most_ms)

    def merge(self, other: "Histogram") -> None:
        """Add all values of another one."""
        for bucket, count in other.counts.items():
            self.add(bucket, count, other.most_ms)

    def percentile_ms(self, fraction: float) -> int | None:
        """The value that this fraction of all does not exceed; None without values. Off by a quarter at most."""
        rank = max(1, math.ceil(fraction * self.count))
        for bucket, count in sorted(self.counts.items()):
            if rank <= count:
                lower, upper = _edges(bucket, self.most_ms)
                return min(lower + (upper - lower - 1) * rank // count, self.most_ms)
            rank -= count
        return None

    def to_text(self) -> str:
        """For a column: JSON."""
        return json.dumps([self.most_ms, sorted(self.counts.items())], separators=(",", ":"))

    @staticmethod
    def from_text(text: str) -> "Histogram":
        """What `to_text` wrote."""
        most_ms, counts = json.loads(text)
        return Histogram(dict(map(tuple, counts)), most_ms)


def bucket_of(milliseconds: int) -> int:
    """The bucket of a value; what is below 0 (clocks differ) is in the first."""
    return bisect_right(BOUNDS, milliseconds)


def _edges(bucket: int, most_ms: int) -> tuple[int, int]:
    lower = BOUNDS[bucket - 1] if bucket else 0
    return lower, BOUNDS[bucket] if bucket < len(BOUNDS) else most_ms + 1
