"""Who may call what: one table, enforced by the gate. What is not in it does not exist."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from starlette.routing import compile_path


class Who(Enum):
    """Whom a route serves."""

    OPEN = auto()
    """Anybody; sessions are not looked at, so that it works without the database."""
    ANYBODY = auto()
    """Anybody; who is signed in sees more."""
    SIGNED_IN = auto()
    """Everybody who is signed in, whatever his role."""
    ADMIN = auto()
    """People of the role admin."""
    METRICS = auto()
    """People of the role admin, and programs that carry the metrics token."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One route: method, path as the router spells it, and whom it serves."""

    method: str
    path: str
    who: Who


RULES: Final = (
    Rule("GET", "/", Who.ANYBODY),
    Rule("POST", "/sign-in", Who.OPEN),
    Rule("POST", "/sign-out", Who.ANYBODY),
    Rule("GET", "/assets/style.css", Who.OPEN),
    Rule("GET", "/health", Who.OPEN),
    Rule("HEAD", "/health", Who.OPEN),
    Rule("GET", "/metrics", Who.METRICS),
    Rule("GET", "/api/v1/openapi.json", Who.SIGNED_IN),
    Rule("POST", "/api/v1/session", Who.OPEN),
    Rule("GET", "/api/v1/session", Who.SIGNED_IN),
    Rule("DELETE", "/api/v1/session", Who.SIGNED_IN),
    Rule("POST", "/api/v1/session/password", Who.SIGNED_IN),
    Rule("GET", "/api/v1/groups", Who.ADMIN),
    Rule("POST", "/api/v1/groups", Who.ADMIN),
    Rule("GET", "/api/v1/groups/{group_id}", Who.ADMIN),
    Rule("PATCH", "/api/v1/groups/{group_id}", Who.ADMIN),
    Rule("DELETE", "/api/v1/groups/{group_id}", Who.ADMIN),
    Rule("POST", "/api/v1/groups/{group_id}/drain", Who.ADMIN),
    Rule("POST", "/api/v1/groups/{group_id}/undrain", Who.ADMIN),
    Rule("GET", "/api/v1/jobs", Who.ADMIN),
    Rule("POST", "/api/v1/jobs", Who.ADMIN),
    Rule("GET", "/api/v1/jobs/{job_id}", Who.ADMIN),
    Rule("PATCH", "/api/v1/jobs/{job_id}", Who.ADMIN),
    Rule("DELETE", "/api/v1/jobs/{job_id}", Who.ADMIN),
    Rule("POST", "/api/v1/jobs/{job_id}/start", Who.ADMIN),
    Rule("POST", "/api/v1/jobs/{job_id}/stop", Who.ADMIN),
    Rule("POST", "/api/v1/jobs/{job_id}/run", Who.ADMIN),
    Rule("GET", "/api/v1/jobs/{job_id}/preview", Who.ADMIN),
    Rule("GET", "/api/v1/jobs/{job_id}/events", Who.ADMIN),
    Rule("GET", "/api/v1/jobs/{job_id}/script", Who.ADMIN),
    Rule("PUT", "/api/v1/jobs/{job_id}/script", Who.ADMIN),
    Rule("GET", "/api/v1/jobs/{job_id}/script/versions", Who.ADMIN),
    Rule("GET", "/api/v1/jobs/{job_id}/script/versions/{version_id}", Who.ADMIN),
    Rule("GET", "/api/v1/schedule/preview", Who.ADMIN),
    Rule("GET", "/api/v1/runs", Who.ADMIN),
    Rule("GET", "/api/v1/runs/{run_id}", Who.ADMIN),
    Rule("GET", "/api/v1/runs/{run_id}/log", Who.ADMIN),
)


class AccessTable:
    """Finds the rule of a request."""

    def __init__(self, rules: Sequence[Rule] = RULES) -> None:
        self._rules = [(compile_path(rule.path)[0], rule) for rule in rules]

    def find(self, method: str, path: str) -> Rule | None:
        """The rule of a method and a path; None if there is none."""
        return next((rule for rule in self._of_path(path) if rule.method == method), None)

    def methods(self, path: str) -> list[str]:
        """The methods that a path has; none if it is unknown."""
        return [rule.method for rule in self._of_path(path)]

    def _of_path(self, path: str) -> list[Rule]:
        return [rule for pattern, rule in self._rules if pattern.match(path)]
