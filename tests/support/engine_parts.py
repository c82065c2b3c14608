"""Jobs, runs and parts of the engine for its tests."""

from typing import Any

from jobwheel.admin.domain.group import Registration
from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.job import DispatchJob, DueJob
from jobwheel.admin.domain.run import PendingRun, TriggerType
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.store.registry import GroupAddresses

NOW_MS = 1_795_746_600_250
"""2026-11-27T02:30:00.250Z."""
SECOND_MS = NOW_MS - 250
"""The whole second that `NOW_MS` lies in."""


def due_job(**fields: Any) -> DueJob:
    """A per-second cron job that is due at `SECOND_MS`."""
    values: dict[str, Any] = {
        "id": JobId(1),
        "group_id": GroupId(1),
        "schedule_type": "CRON",
        "schedule_conf": "* * * * * ?",
        "time_zone": None,
        "anchor_ms": None,
        "misfire_strategy": "DO_NOTHING",
        "parameter": "day=1",
        "next_ms": SECOND_MS,
    }
    return DueJob(**{**values, **fields})


def pending_run(run_id: int, due_ms: int = NOW_MS, **fields: Any) -> PendingRun:
    values: dict[str, Any] = {
        "id": RunId(run_id),
        "job_id": JobId(1),
        "group_id": GroupId(1),
        "trigger_type": TriggerType.CRON,
        "planned_ms": due_ms,
        "due_ms": due_ms,
        "triggered_ms": due_ms - due_ms % 1000,
        "parameter": "day=1",
        "named_addresses": (),
        "attempt": 1,
    }
    return PendingRun(**{**values, **fields})


def dispatch_job(**fields: Any) -> DispatchJob:
    values: dict[str, Any] = {
        "id": JobId(1),
        "group_id": GroupId(1),
        "handler": "settle",
        "route_strategy": "FIRST",
        "block_strategy": "SERIAL_EXECUTION",
        "timeout_s": 0,
        "glue_type": "BEAN",
    }
    return DispatchJob(**{**values, **fields})


def group_addresses(*registrations: Registration, fixed: bool = False, group_id: int = 1) -> GroupAddresses:
    return GroupAddresses(GroupId(group_id), "orders", fixed, registrations)


def candidates_of(*addresses: str) -> list[Candidate]:
    """What the address book would offer of these addresses."""
    return [Candidate(address, None) for address in addresses]


def hosts(count: int) -> list[Candidate]:
    """So many candidates, sorted."""
    return candidates_of(*(f"http://host-{n:03}:9999/" for n in range(count)))
