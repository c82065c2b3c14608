"""Time arithmetic: when a job runs next. Pure functions of settings and instants, without a clock."""

from jobwheel.schedule.base import Language, Schedule, ScheduleType
from jobwheel.schedule.cron import CronSchedule
from jobwheel.schedule.errors import ScheduleError
from jobwheel.schedule.interval import FixDelaySchedule, FixRateSchedule
from jobwheel.schedule.never import NeverSchedule
from jobwheel.schedule.once import OnceSchedule
from jobwheel.schedule.parse import parse_schedule
from jobwheel.schedule.preview import count_in, last_in, newest_in, preview
from jobwheel.schedule.windows import (
    Window,
    WindowedSchedule,
    admitted,
    closed_times,
    with_closed_times,
    without_closed_times,
)
from jobwheel.schedule.zones import load_zone

__all__ = [
    "CronSchedule",
    "FixDelaySchedule",
    "FixRateSchedule",
    "Language",
    "NeverSchedule",
    "OnceSchedule",
    "Schedule",
    "ScheduleError",
    "ScheduleType",
    "Window",
    "WindowedSchedule",
    "admitted",
    "closed_times",
    "count_in",
    "last_in",
    "load_zone",
    "newest_in",
    "parse_schedule",
    "preview",
    "with_closed_times",
    "without_closed_times",
]
