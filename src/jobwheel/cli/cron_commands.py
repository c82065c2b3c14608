"""`jobwheel cron …`: what an expression means, without an admin."""

import os
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from jobwheel.cli.access import JsonOption
from jobwheel.cli.output import print_json, tell
from jobwheel.kernel.clock import SystemClock
from jobwheel.schedule import Language, Schedule, load_zone, parse_schedule, preview
from jobwheel.schedule.once import parse_once

Expression = Annotated[
    str, typer.Argument(metavar="EXPRESSION", help="Seven or six fields from seconds on, such as '0 30 2 * * ?'.")
]


def cron_next(
    expression: Expression,
    zone: Annotated[
        str | None, typer.Option("--zone", show_default=False, help="An IANA zone [default: this machine's].")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", show_default=False, help="After when, such as 2026-12-01T02:00:00 [default: now]."),
    ] = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=1000, help="How many.")] = 5,
    as_json: JsonOption = False,
) -> None:
    """Print the next times of a cron expression."""
    zone_name = _host_zone() if zone is None else zone
    schedule = _parse(expression, zone_name)
    from_ms = SystemClock().now() if start is None else parse_once(start, load_zone(zone_name)).instant_ms
    times = [_wall(instant, zone_name) for instant in preview(schedule, from_ms, count)]
    if as_json:
        print_json({"expression": str(schedule), "zone": zone_name, "times": times})
        return
    for time in times:
        print(time)
    if len(times) < count:
        tell("and never again" if times else "never")


def cron_explain(
    expression: Expression,
    language: Annotated[Language, typer.Option("--language", help="In which language.")] = Language.EN,
    as_json: JsonOption = False,
) -> None:
    """Say in words when a cron expression fires."""
    description = _parse(expression, "UTC").describe(language)
    if as_json:
        print_json({"expression": expression, "language": language.value, "description": description})
    else:
        print(description)


def _parse(expression: str, zone: str) -> Schedule:
    return parse_schedule("CRON", expression, zone=zone, anchor_ms=None)


def _host_zone() -> str:
    # Imported when it is needed: it brings the admin's packages, which take most of a second.
    from jobwheel.admin.services.installation import host_zone  # noqa: PLC0415 - see above

    return host_zone(os.environ)


def _wall(instant_ms: int, zone: str) -> str:
    return datetime.fromtimestamp(instant_ms // 1000, ZoneInfo(zone)).isoformat()
