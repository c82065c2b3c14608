"""Making, rotating and revoking the tokens of groups."""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.group import Group
from jobwheel.admin.domain.group_token import MOST_TOKENS, GroupToken, valid_tokens
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.services.errors import InvalidFieldError, NotFoundError, TooManyTokensError
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import insert_event
from jobwheel.admin.store.group_tokens import NewToken, add_token, keep_tokens
from jobwheel.admin.store.groups import get_group
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.instants import instant_text
from jobwheel.kernel.secret import Secret

DEFAULT_OVERLAP_S: Final = 24 * 3600
MOST_OVERLAP_S: Final = 90 * 24 * 3600
_PREFIX: Final = "jwg_"
"""So that tools that look for secrets in texts know one when they see it."""


class GroupTokens:
    """The use cases of groups' tokens. `actor` is the name of who asks; a secret is given out when it is made alone.

    `make_known` is called after each change, so that this node knows it at once; the others do within a second.
    """

    def __init__(
        self, database: Database, clock: Clock, zone: InstallationZone, make_known: Callable[[], Awaitable[None]]
    ) -> None:
        self._database = database
        self._clock = clock
        self._zone = zone
        self._make_known = make_known

    async def list(self, group_id: GroupId) -> Sequence[GroupToken]:
        """The valid tokens of a group, the newest first.

        Raises:
            NotFoundError: there is no such group.
        """
        group = await self._database.read(get_group, self._zone, group_id)
        if group is None:
            raise NotFoundError("group", group_id)
        return valid_tokens(group.tokens, self._database.now_ms())

    async def make(self, group_id: GroupId, *, actor: str) -> GroupToken:
        """Make a group's first token.

        Raises:
            NotFoundError: there is no such group.
            TooManyTokensError: it has one.
        """
        made = await self._database.write(self._make, group_id, actor)
        await self._make_known()
        return made

    async def rotate(self, group_id: GroupId, overlap_s: int, *, actor: str) -> GroupToken:
        """Make a group's next token; the one before it is valid for `overlap_s` seconds more.

        Raises:
            NotFoundError: there is no such group, or it has no token.
            InvalidFieldError: the overlap is too long.
            TooManyTokensError: the rotation before has not ended.
        """
        if not 0 <= overlap_s <= MOST_OVERLAP_S:
            raise InvalidFieldError("overlap_s", f"{overlap_s} is not from 0 to {MOST_OVERLAP_S} seconds")
        made = await self._database.write(self._rotate, group_id, overlap_s, actor)
        await self._make_known()
        return made

    async def revoke(self, group_id: GroupId, token_id: int, *, actor: str) -> None:
        """End a token at once: who carries it is refused, and who registered with it gets no run any more.

        Raises:
            NotFoundError: there is no such group, or no such valid token of it.
        """
        await self._database.write(self._revoke, group_id, token_id, actor)
        await self._make_known()

    def _make(self, connection: Connection, group_id: GroupId, actor: str) -> GroupToken:
        group, valid = self._locked(connection, group_id)
        if valid:
            raise TooManyTokensError(group.app_name, "has a token: rotate it")
        keep_tokens(connection, group_id, ())
        made = self._add(connection, group_id, actor)
        self._record(connection, EventKind.GROUP_TOKEN_MADE, group, actor, {"token": made.id})
        return made

    def _rotate(self, connection: Connection, group_id: GroupId, overlap_s: int, actor: str) -> GroupToken:
        group, valid = self._locked(connection, group_id)
        if not valid:
            raise NotFoundError("token of the group", group.app_name)
        if len(valid) >= MOST_TOKENS:
            raise TooManyTokensError(
                group.app_name, f"is in a rotation: revoke the token {valid[-1].id}, or wait until it has expired"
            )
        now_ms = self._database.now_ms()
        ends_ms = now_ms + overlap_s * 1000
        kept = [replace(each, expires_ms=ends_ms) for each in valid] if overlap_s else []
        keep_tokens(connection, group_id, kept)
        made = self._add(connection, group_id, actor)
        details = {"token": made.id, "before": valid[0].id, "before_expires_at": instant_text(ends_ms)}
        self._record(connection, EventKind.GROUP_TOKEN_ROTATED, group, actor, details)
        return made

    def _revoke(self, connection: Connection, group_id: GroupId, token_id: int, actor: str) -> None:
        group, valid = self._locked(connection, group_id)
        if all(each.id != token_id for each in valid):
            raise NotFoundError(f"token of the group {group.app_name} with the id", token_id)
        keep_tokens(connection, group_id, [each for each in reversed(valid) if each.id != token_id])
        self._record(connection, EventKind.GROUP_TOKEN_REVOKED, group, actor, {"token": token_id})

    def _locked(self, connection: Connection, group_id: GroupId) -> tuple[Group, tuple[GroupToken, ...]]:
        group = get_group(connection, self._zone, group_id, lock=True)
        if group is None:
            raise NotFoundError("group", group_id)
        return group, valid_tokens(group.tokens, self._database.now_ms())

    def _add(self, connection: Connection, group_id: GroupId, actor: str) -> GroupToken:
        secret = Secret(_PREFIX + secrets.token_urlsafe(32))
        return add_token(connection, group_id, NewToken(secret, actor, self._database.now_ms(), None))

    def _record(
        self, connection: Connection, kind: EventKind, group: Group, actor: str, details: dict[str, object]
    ) -> None:
        details = {"app_name": group.app_name, **details}
        insert_event(connection, NewEvent(kind, self._clock.now(), actor, group.id, None, None, details))
