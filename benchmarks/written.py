"""How late requests were written to the wire, as the admin counts it in `/metrics`."""

import math
from collections.abc import Mapping
from typing import Final

from benchmarks.metrics import read_samples

_BUCKET: Final = "jobwheel_run_lateness_seconds_bucket"

Buckets = Mapping[float, float]
"""How many runs were sent so late or less, by the bound in seconds, since the start of the process."""


def read_buckets(admin_url: str, metrics_token: str) -> Buckets:
    samples = read_samples(admin_url, metrics_token)
    return {float(sample.labels["le"]): sample.value for sample in samples if sample.name == _BUCKET}


def percentile_ms(before: Buckets, after: Buckets, share: float) -> float:
    """The bound, in milliseconds, of the first bucket that this share of the runs in between was within.

    -1 without a run, or if they were later than the last bound.
    """
    counts = {bound: after[bound] - before.get(bound, 0) for bound in sorted(after)}
    total = counts.get(math.inf, 0)
    bound = next((bound for bound, count in counts.items() if total and count >= total * share), math.inf)
    return -1 if math.isinf(bound) else bound * 1000
