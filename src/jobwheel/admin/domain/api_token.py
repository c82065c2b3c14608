"""Tokens of programs that use the REST API."""

from dataclasses import dataclass

from jobwheel.admin.domain.caller import Caller, Right
from jobwheel.admin.domain.ids import ApiTokenId, GroupId


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token, without the secret. It is for one group, or for all if `group_id` is None. Times are this host's."""

    id: ApiTokenId
    name: str
    group_id: GroupId | None
    right: Right
    created_by: str
    created_ms: int
    expires_ms: int | None

    def is_valid(self, now_ms: int) -> bool:
        """Whether it may be used at this moment."""
        return self.expires_ms is None or now_ms < self.expires_ms

    @property
    def caller(self) -> Caller:
        """Who carries it. Not an admin, whatever it is for: a token makes no other tokens."""
        groups = None if self.group_id is None else frozenset([self.group_id])
        return Caller(f"token:{self.id}:{self.name}"[:64], self.right, groups, is_program=True)
