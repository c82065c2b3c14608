"""From a job's settings to its schedule."""

from typing import assert_never

from jobwheel.schedule.base import Schedule, ScheduleType
from jobwheel.schedule.cron import CronSchedule
from jobwheel.schedule.cron_parse import parse_cron
from jobwheel.schedule.errors import ScheduleError
from jobwheel.schedule.interval import FixDelaySchedule, FixRateSchedule, parse_interval
from jobwheel.schedule.never import NeverSchedule
from jobwheel.schedule.once import parse_once
from jobwheel.schedule.zones import load_zone


def parse_schedule(schedule_type: str, conf: str, *, zone: str, anchor_ms: int | None) -> Schedule:
    """The schedule of a job's settings; the zone is checked for every type.

    Args:
        schedule_type: a `ScheduleType`.
        conf: the expression, the seconds or the time; NONE ignores it.
        zone: an IANA name.
        anchor_ms: what FIX_RATE counts from (see `FixRateSchedule`); the others ignore it.

    Raises:
        ScheduleError: its `field` names the setting at fault.
    """
    try:
        kind = ScheduleType(schedule_type)
    except ValueError:
        problem = f"{schedule_type!r} is not one of {', '.join(ScheduleType)}"
        raise ScheduleError("schedule_type", "schedule type", problem) from None
    loaded = load_zone(zone)
    match kind:
        case ScheduleType.NONE:
            return NeverSchedule()
        case ScheduleType.CRON:
            return CronSchedule(parse_cron(conf), loaded)
        case ScheduleType.FIX_RATE:
            return FixRateSchedule(parse_interval(conf), anchor_ms)
        case ScheduleType.FIX_DELAY:
            return FixDelaySchedule(parse_interval(conf))
        case ScheduleType.ONCE:
            return parse_once(conf, loaded)
        case _:
            assert_never(kind)
