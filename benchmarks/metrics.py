"""What an admin says of itself in `/metrics`."""

from collections.abc import Iterator

import httpx
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample


def read_samples(admin_url: str, metrics_token: str) -> Iterator[Sample]:
    reply = httpx.get(f"{admin_url}/metrics", headers={"Authorization": f"Bearer {metrics_token}"}, timeout=30)
    reply.raise_for_status()
    for family in text_string_to_metric_families(reply.text):
        yield from family.samples


def read_value(admin_url: str, metrics_token: str, name: str) -> float:
    """The figure of this name, which has no labels."""
    return next(sample.value for sample in read_samples(admin_url, metrics_token) if sample.name == name)
