"""The admin's routes, which one test after the other has: to make them takes longer than most tests do."""

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, Final

from fastapi import FastAPI

from jobwheel.admin.api.app import Services, create_routes


class _Current:
    """Stands for a service, whichever the test has that has the routes."""

    service: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.service, name)


class _Made:
    """Routes that call the services they are given for as long."""

    def __init__(self, services: Services) -> None:
        # What is no object of its own stays as it is.
        self._current: dict[str, Any] = {each.name: _Current() for each in fields(services) if each.name not in _PLAIN}
        self.give(services)
        self.routes = create_routes(replace(services, **self._current))

    def give(self, services: Services | None) -> None:
        for name, current in self._current.items():
            current.service = getattr(services, name, None)


_PLAIN: Final = ("zone_name", "metrics_token")
"""Values; of these the routes know the first, and the gate, which each test has of its own, the other."""
_FREE: Final[defaultdict[str, list[_Made]]] = defaultdict(list)


@contextlib.contextmanager
def routes_for(services: Services) -> Iterator[FastAPI]:
    """Routes that nobody else has meanwhile."""
    free = _FREE[services.zone_name]
    made = free.pop() if free else _Made(services)
    made.give(services)
    try:
        yield made.routes
    finally:
        made.give(None)
        free.append(made)
