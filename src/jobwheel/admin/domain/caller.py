"""Who asks, and what he may see and change: the one place that says so, for people and programs alike."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Self

from jobwheel.admin.domain.group_token import TokenRef
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.domain.run import TriggerType
from jobwheel.admin.domain.user import Role, User


class Right(IntEnum):
    """What somebody may do to what is in his groups; each includes the ones before it."""

    NONE = -1
    READ = 0
    WRITE = 1
    SCRIPTS = 2
    """Change scripts, too: what they say runs on the executors."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `name` is for the events; `group_ids` are his groups, None for all of them.

    `is_admin`: a person who may do everything, also what belongs to no group (users, tokens). `is_program`: no person.
    """

    name: str
    right: Right
    group_ids: frozenset[GroupId] | None = None
    is_admin: bool = False
    is_program: bool = False

    @classmethod
    def of_user(cls, user: User) -> Self:
        """A person who is signed in. Roles other than admin may do nothing yet."""
        if user.role is Role.ADMIN:
            return cls(user.name, Right.SCRIPTS, None, is_admin=True)
        return cls(user.name, Right.NONE, frozenset())

    @property
    def sees_all(self) -> bool:
        """Whether every group is his."""
        return self.group_ids is None

    @property
    def trigger_type(self) -> TriggerType:
        """What made the runs that he asks for."""
        return TriggerType.API if self.is_program else TriggerType.MANUAL

    def sees(self, group_id: GroupId | None) -> bool:
        """Whether a group is one of his; None: a group that is not there is nobody's but his who sees all."""
        return self.group_ids is None or group_id in self.group_ids


@dataclass(frozen=True, slots=True)
class WireCaller:
    """Whom a request of the executors' API acts for: the installation, or with a group's token that group alone."""

    app_name: str | None = None
    token: TokenRef | None = None

    @property
    def group_id(self) -> GroupId | None:
        """The one group; None for the installation."""
        return None if self.token is None else self.token.group_id

    @property
    def caller(self) -> Caller:
        """The same as one who manages jobs."""
        if self.token is None:
            return Caller("api", Right.SCRIPTS, is_program=True)
        # As long as an event's actor may be.
        groups = frozenset([self.token.group_id])
        return Caller(f"api:{self.app_name}"[:64], Right.SCRIPTS, groups, is_program=True)


INSTALLATION = WireCaller()
"""Who carries the installation's token: he may act for every group."""
