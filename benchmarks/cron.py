"""How long one next time and one parse take, in microseconds: `python -m benchmarks.cron [--json]`."""

import argparse
import json
import statistics
import timeit
from collections.abc import Callable
from functools import partial
from typing import Final

from jobwheel.schedule import parse_schedule

# 2026-11-10T19:02:55.713Z; the next leap day is more than a year away.
_BASE_MS: Final = 1_794_337_375_713
_ROUNDS: Final = 200
_CALLS: Final = 100
_EXPRESSIONS: Final = {
    "every_5_minutes": "0 0/5 * * * ?",
    "leap_day": "0 0 0 29 2 ? *",
    "daily": "0 30 2 * * ?",
    "last_weekday": "0 0 9 LW * ?",
}
_ZONES: Final = {"": "UTC", "_new_york": "America/New_York"}


def measure() -> dict[str, float]:
    figures = {
        f"cron_{name}{suffix}_us": _next_time_us(expression, zone)
        for suffix, zone in _ZONES.items()
        for name, expression in _EXPRESSIONS.items()
    }
    parse = partial(parse_schedule, "CRON", "0 0/5 9-17 ? * MON-FRI", zone="UTC", anchor_ms=None)
    return figures | {"parse_us": _median_us(parse)}


def _next_time_us(expression: str, zone: str) -> float:
    schedule = parse_schedule("CRON", expression, zone=zone, anchor_ms=None)
    base_ms = _BASE_MS

    def step() -> None:
        # Goes through the row of fires, as a scheduler does.
        nonlocal base_ms
        base_ms = schedule.next_after(base_ms) or _BASE_MS

    return _median_us(step)


def _median_us(call: Callable[[], object]) -> float:
    """The median of rounds, each the mean of its calls."""
    call()
    rounds = timeit.repeat(call, number=_CALLS, repeat=_ROUNDS)
    return round(statistics.median(rounds) / _CALLS * 1e6, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON line")
    arguments = parser.parse_args()
    figures = measure()
    if arguments.json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:36} {figure:8.2f}")


if __name__ == "__main__":
    main()
