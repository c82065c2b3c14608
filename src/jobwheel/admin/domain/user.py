"""People who sign in."""

from dataclasses import dataclass
from enum import StrEnum

from jobwheel.admin.domain.ids import UserId


class Role(StrEnum):
    """What a person may do."""

    ADMIN = "admin"
    USER = "user"
    VIEWER = "viewer"


@dataclass(frozen=True, slots=True)
class User:
    """A stored user, without anything secret."""

    id: UserId
    name: str
    role: Role
    disabled: bool
