"""What an admin of XXL-JOB cannot honour, field by field."""

from typing import Any

import pytest

from jobwheel.admin.domain.alarm import JobAlarms
from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.java_admin import losses_of
from jobwheel.admin.domain.job import JobSettings, PauseWindow
from jobwheel.admin.domain.policies import MisfireStrategy, RetryBackoff, RouteStrategy, UncertainSend
from jobwheel.schedule import ScheduleType

NOW_MS = 1_795_746_600_250
ZONE = "Asia/Shanghai"


def settings(**fields: Any) -> JobSettings:
    common = {
        "group_id": GroupId(1),
        "name": "settle",
        "author": "ada",
        "schedule_type": ScheduleType.CRON,
        "schedule_conf": "0 0 2 * * ?",
        "handler": "settle",
    }
    return JobSettings(**{**common, **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"schedule_type": ScheduleType.FIX_RATE, "schedule_conf": "5"},
        {"misfire_strategy": MisfireStrategy.FIRE_ONCE_NOW, "retry_count": 3, "timeout_s": 9},
        {"time_zone": ZONE},
        {"valid_from_ms": NOW_MS, "pause_windows": (PauseWindow(1, NOW_MS),)},
        {"retry_interval_s": 30},
        {"child_job_ids": (JobId(2),)},
        {"route_strategy": RouteStrategy.SHARDING_BROADCAST},
    ],
)
def test_what_the_other_admin_does_alike_is_no_loss(fields: dict[str, Any]) -> None:
    assert losses_of(settings(**fields), ZONE, NOW_MS) == []


@pytest.mark.parametrize(
    ("fields", "what", "is_grave"),
    [
        ({"schedule_type": ScheduleType.ONCE}, "schedule_type", True),
        ({"schedule_type": ScheduleType.FIX_DELAY}, "schedule_type", True),
        ({"misfire_strategy": MisfireStrategy.FIRE_ALL}, "misfire_strategy", True),
        ({"time_zone": "UTC"}, "time_zone", True),
        ({"valid_from_ms": NOW_MS + 1}, "valid_from", True),
        ({"valid_until_ms": NOW_MS - 1}, "valid_until", True),
        ({"pause_windows": (PauseWindow(1, 2), PauseWindow(NOW_MS - 1, NOW_MS + 1))}, "pause_windows", True),
        ({"run_limit": 2}, "run_limit", True),
        ({"retry_count": 1, "retry_interval_s": 30}, "retry_interval_s", True),
        ({"retry_count": 1, "retry_backoff": RetryBackoff.DOUBLING}, "retry_interval_s", True),
        (
            {"route_strategy": RouteStrategy.SHARDING_BROADCAST, "child_job_ids": (JobId(2),)},
            "child_job_ids",
            True,
        ),
        ({"alarms": JobAlarms(late_start_s=60)}, "alarm_settings", False),
        ({"uncertain_send": UncertainSend.SEND_AGAIN}, "uncertain_send", False),
        ({"retention_days": 0}, "retention_days", False),
        ({"key": "settle"}, "key", False),
        ({"tags": ("night",)}, "tags", False),
    ],
)
def test_what_it_does_not_know_is_named(fields: dict[str, Any], what: str, is_grave: bool) -> None:
    (loss,) = losses_of(settings(**fields), ZONE, NOW_MS)
    assert (loss.what, loss.is_grave) == (what, is_grave)
