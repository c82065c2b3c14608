"""The tokens of a group: who carries one acts for that group alone."""

from collections.abc import Iterable
from dataclasses import dataclass

from jobwheel.admin.domain.ids import GroupId
from jobwheel.kernel.secret import Secret

MOST_TOKENS = 2
"""How many tokens of a group are valid at once: one, and during a rotation the one before."""


@dataclass(frozen=True, slots=True)
class GroupToken:
    """A token of a group. It is sent to executors as well, so that it cannot be kept as a hash.

    `id` is the token's among those of its group, and never given twice. Times are by the database's clock; one without
    `expires_ms` is valid until it is rotated or revoked.
    """

    id: int
    secret: Secret
    created_by: str
    created_ms: int
    expires_ms: int | None = None

    def is_valid(self, now_ms: int) -> bool:
        """Whether it may be used at this moment."""
        return self.expires_ms is None or now_ms < self.expires_ms


@dataclass(frozen=True, slots=True)
class TokenRef:
    """Which token of which group: what is remembered of a registration, without the secret."""

    group_id: GroupId
    token_id: int


def valid_tokens(tokens: Iterable[GroupToken], now_ms: int) -> tuple[GroupToken, ...]:
    """Those that may be used at this moment, the newest first."""
    valid = (each for each in tokens if each.is_valid(now_ms))
    return tuple(sorted(valid, key=lambda each: each.id, reverse=True))
