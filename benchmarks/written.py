"""How late requests were written to the wire, as the admin counts it in `/metrics`."""

import math
from collections.abc import Mapping
from typing import Final

import httpx
from prometheus_client.parser import text_string_to_metric_families

_METRIC: Final = "jobwheel_run_lateness_seconds"

Buckets = Mapping[float, float]
"""How many runs were sent so late or less, by the bound in seconds, since the start of the process."""


def read_buckets(admin_url: str, metrics_token: str) -> Buckets:
    reply = httpx.get(f"{admin_url}/metrics", headers={"Authorization": f"Bearer {metrics_token}"}, timeout=30)
    reply.raise_for_status()
    return {
        float(sample.labels["le"]): sample.value
        for family in text_string_to_metric_families(reply.text)
        for sample in family.samples
        if sample.name == f"{_METRIC}_bucket"
    }


def percentile_ms(before: Buckets, after: Buckets, share: float) -> float:
    """The bound, in milliseconds, of the first bucket that this share of the runs in between was within.

    -1 without a run, or if they were later than the last bound.
    """
    counts = {bound: after[bound] - before.get(bound, 0) for bound in sorted(after)}
    total = counts.get(math.inf, 0)
    bound = next((bound for bound, count in counts.items() if total and count >= total * share), math.inf)
    return -1 if math.isinf(bound) else bound * 1000
