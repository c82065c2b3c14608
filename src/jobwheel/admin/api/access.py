"""Who may call what: one table, enforced by the gate. What is not in it does not exist."""

from collections.abc import Mapping, Sequence
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
    """Everybody who is signed in, whatever his role. API tokens have no session and open nothing here."""
    CALLER = auto()
    """Everybody who is signed in, and every API token."""
    READ = auto()
    """Who may read what is in the group of the thing that the path names."""
    WRITE = auto()
    """Who may change what is in that group, and run its jobs."""
    SCRIPTS = auto()
    """Who may change scripts in that group, too."""
    ALL_GROUPS = auto()
    """Who may change what is in every group."""
    ADMIN = auto()
    """People of the role admin."""
    METRICS = auto()
    """People of the role admin, and programs that carry the metrics token."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One route: method, path as the router spells it, and whom it serves.

    Of a path with a `{group_id}`, `{job_id}` or `{run_id}` the gate looks the stored thing up: one of a group that is
    not the caller's is answered like one that does not exist, whatever the route serves for. A route that makes or
    lists things, or names them in another way, is told the caller's groups and holds to them itself.
    """

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
    Rule("GET", "/api/v1/openapi.json", Who.CALLER),
    Rule("POST", "/api/v1/session", Who.OPEN),
    Rule("GET", "/api/v1/session", Who.SIGNED_IN),
    Rule("DELETE", "/api/v1/session", Who.SIGNED_IN),
    Rule("POST", "/api/v1/session/password", Who.SIGNED_IN),
    Rule("GET", "/api/v1/groups", Who.READ),
    Rule("POST", "/api/v1/groups", Who.ALL_GROUPS),
    Rule("GET", "/api/v1/groups/{group_id}", Who.READ),
    Rule("PATCH", "/api/v1/groups/{group_id}", Who.ALL_GROUPS),
    Rule("DELETE", "/api/v1/groups/{group_id}", Who.ALL_GROUPS),
    Rule("POST", "/api/v1/groups/{group_id}/drain", Who.WRITE),
    Rule("POST", "/api/v1/groups/{group_id}/undrain", Who.WRITE),
    Rule("POST", "/api/v1/groups/{group_id}/probe", Who.WRITE),
    Rule("GET", "/api/v1/groups/{group_id}/tokens", Who.ADMIN),
    Rule("POST", "/api/v1/groups/{group_id}/tokens", Who.ADMIN),
    Rule("POST", "/api/v1/groups/{group_id}/tokens/rotate", Who.ADMIN),
    Rule("DELETE", "/api/v1/groups/{group_id}/tokens/{token_id}", Who.ADMIN),
    Rule("GET", "/api/v1/tokens", Who.ADMIN),
    Rule("POST", "/api/v1/tokens", Who.ADMIN),
    Rule("DELETE", "/api/v1/tokens/{token_id}", Who.ADMIN),
    Rule("GET", "/api/v1/groups/{app_name}/jobs/{key}", Who.READ),
    Rule("PUT", "/api/v1/groups/{app_name}/jobs/{key}", Who.WRITE),
    Rule("DELETE", "/api/v1/groups/{app_name}/jobs/{key}", Who.WRITE),
    Rule("POST", "/api/v1/groups/{app_name}/jobs/{key}/run", Who.WRITE),
    Rule("GET", "/api/v1/jobs", Who.READ),
    Rule("POST", "/api/v1/jobs", Who.WRITE),
    Rule("GET", "/api/v1/jobs/export", Who.READ),
    Rule("POST", "/api/v1/jobs/plan", Who.READ),
    Rule("POST", "/api/v1/jobs/apply", Who.WRITE),
    Rule("POST", "/api/v1/jobs/bulk", Who.WRITE),
    Rule("GET", "/api/v1/jobs/{job_id}", Who.READ),
    Rule("PATCH", "/api/v1/jobs/{job_id}", Who.WRITE),
    Rule("DELETE", "/api/v1/jobs/{job_id}", Who.WRITE),
    Rule("POST", "/api/v1/jobs/{job_id}/start", Who.WRITE),
    Rule("POST", "/api/v1/jobs/{job_id}/stop", Who.WRITE),
    Rule("POST", "/api/v1/jobs/{job_id}/run", Who.WRITE),
    Rule("POST", "/api/v1/jobs/{job_id}/backfill", Who.WRITE),
    Rule("DELETE", "/api/v1/jobs/{job_id}/backfill", Who.WRITE),
    Rule("POST", "/api/v1/jobs/{job_id}/kill-runs", Who.WRITE),
    Rule("GET", "/api/v1/jobs/{job_id}/preview", Who.READ),
    Rule("GET", "/api/v1/jobs/{job_id}/events", Who.READ),
    Rule("GET", "/api/v1/jobs/{job_id}/statistics", Who.READ),
    Rule("GET", "/api/v1/jobs/{job_id}/script", Who.READ),
    Rule("PUT", "/api/v1/jobs/{job_id}/script", Who.SCRIPTS),
    Rule("GET", "/api/v1/jobs/{job_id}/script/versions", Who.READ),
    Rule("GET", "/api/v1/jobs/{job_id}/script/versions/{version_id}", Who.READ),
    Rule("GET", "/api/v1/alarm-channels", Who.ADMIN),
    Rule("POST", "/api/v1/alarm-channels", Who.ADMIN),
    Rule("GET", "/api/v1/alarm-channels/{channel_id}", Who.ADMIN),
    Rule("PATCH", "/api/v1/alarm-channels/{channel_id}", Who.ADMIN),
    Rule("DELETE", "/api/v1/alarm-channels/{channel_id}", Who.ADMIN),
    Rule("POST", "/api/v1/alarm-channels/{channel_id}/test", Who.ADMIN),
    Rule("GET", "/api/v1/schedule/preview", Who.READ),
    Rule("GET", "/api/v1/reports/daily", Who.READ),
    Rule("GET", "/api/v1/runs", Who.READ),
    Rule("GET", "/api/v1/runs/clean-up", Who.READ),
    Rule("POST", "/api/v1/runs/clean-up", Who.WRITE),
    Rule("GET", "/api/v1/runs/clean-up/{clean_up_id}", Who.READ),
    Rule("POST", "/api/v1/runs/clean-up/{clean_up_id}/cancel", Who.WRITE),
    Rule("POST", "/api/v1/runs/rerun", Who.WRITE),
    Rule("GET", "/api/v1/runs/{run_id}", Who.READ),
    Rule("GET", "/api/v1/runs/{run_id}/chain", Who.READ),
    Rule("GET", "/api/v1/runs/{run_id}/log", Who.READ),
    Rule("POST", "/api/v1/runs/{run_id}/kill", Who.WRITE),
)


@dataclass(frozen=True, slots=True)
class Found:
    """A request's rule, and the texts that stand in its path for the names in braces."""

    rule: Rule
    names: Mapping[str, str]


class AccessTable:
    """Finds the rule of a request."""

    def __init__(self, rules: Sequence[Rule] = RULES) -> None:
        self._rules = [(compile_path(rule.path)[0], rule) for rule in rules]

    def find(self, method: str, path: str) -> Found | None:
        """The rule of a method and a path; None if there is none."""
        return next((found for found in self._of_path(path) if found.rule.method == method), None)

    def methods(self, path: str) -> list[str]:
        """The methods that a path has; none if it is unknown."""
        return [found.rule.method for found in self._of_path(path)]

    def _of_path(self, path: str) -> list[Found]:
        matches = ((pattern.match(path), rule) for pattern, rule in self._rules)
        return [Found(rule, match.groupdict()) for match, rule in matches if match]
