"""Reads what `/metrics` says."""

import httpx
from prometheus_client.parser import text_string_to_metric_families

BACKLOG = (
    "jobwheel_lane_waiting_runs{lane=fast}",
    "jobwheel_lane_waiting_runs{lane=slow}",
    "jobwheel_parked_runs",
    "jobwheel_database_waiting_runs",
)
"""Runs that came due and have not taken off."""


def samples(reply: httpx.Response) -> dict[str, float]:
    """The samples by name and labels."""
    assert reply.status_code == 200
    found = {}
    for family in text_string_to_metric_families(reply.text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def backlog(found: dict[str, float]) -> float:
    return sum(found[name] for name in BACKLOG)
