"""Making and revoking the tokens of programs that use the REST API, and whose token a request carries."""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from jobwheel.admin.domain.api_token import ApiToken
from jobwheel.admin.domain.caller import Caller, Right
from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.ids import ApiTokenId, GroupId
from jobwheel.admin.services.errors import InvalidFieldError, NotFoundError
from jobwheel.admin.services.texts import checked_text
from jobwheel.admin.services.throttle import TokenThrottle
from jobwheel.admin.store import Connection
from jobwheel.admin.store.api_tokens import find_api_token, insert_api_token, list_api_tokens, take_api_token
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import insert_event
from jobwheel.admin.store.groups import get_group
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.instants import instant_text
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.secret import Secret

log = get_logger(__name__)

MOST_NAME: Final = 48
ACCESSES: Final = {"read": Right.READ, "write": Right.WRITE, "scripts": Right.SCRIPTS}
"""What a token may be for, by the names of the API."""

_PREFIX: Final = "jwa_"
_MOST_KNOWN: Final = 1000


@dataclass(frozen=True, slots=True)
class NewApiToken:
    """What somebody wants. `group_id` None = all groups; `expires_ms` None = never."""

    name: str
    access: str
    group_id: GroupId | None = None
    expires_ms: int | None = None


class ApiTokens:
    """The use cases of API tokens. `actor` is the name of who asks."""

    def __init__(self, database: Database, clock: Clock, zone: InstallationZone) -> None:
        self._database = database
        self._clock = clock
        self._zone = zone
        self._throttle = TokenThrottle(clock)
        # Hashes that were right lately: a neighbour's wrong guesses do not lock their owners out.
        self._right: OrderedDict[str, None] = OrderedDict()

    async def make(self, wanted: NewApiToken, *, actor: str) -> tuple[ApiToken, Secret]:
        """Make a token; its secret is given out here and never again.

        Raises:
            InvalidFieldError: a field is wrong.
            NotFoundError: there is no such group.
        """
        now_ms = self._clock.now()
        if wanted.access not in ACCESSES:
            raise InvalidFieldError("access", f"{wanted.access[:50]!r} is not one of {', '.join(ACCESSES)}")
        if wanted.expires_ms is not None and wanted.expires_ms <= now_ms:
            raise InvalidFieldError("expires_at", f"{instant_text(wanted.expires_ms)} is over")
        name = checked_text("name", wanted.name.strip(), MOST_NAME, least=1)
        right = ACCESSES[wanted.access]
        new = ApiToken(ApiTokenId(0), name, wanted.group_id, right, actor, now_ms, wanted.expires_ms)
        secret = Secret(_PREFIX + secrets.token_urlsafe(32))
        return await self._database.write(self._make, new, _hashed(secret.reveal())), secret

    async def page(self, after_id: int, limit: int) -> Sequence[ApiToken]:
        """Tokens by ascending id, those that have expired too."""
        return await self._database.read(list_api_tokens, after_id, limit)

    async def revoke(self, token_id: ApiTokenId, *, actor: str) -> None:
        """End a token at once, on every node.

        Raises:
            NotFoundError: there is no such token.
        """
        await self._database.write(self._revoke, token_id, actor)

    async def find(self, token: str, address: str) -> Caller | None:
        """Who carries a token; None if it is none, or is over. `address` is where the request comes from.

        Raises:
            TooManyGuessesError: too many wrong tokens came from there; this one was not looked at.
        """
        hashed = _hashed(token)
        if hashed not in self._right:
            self._throttle.check(address)
        found = await self._database.read(find_api_token, hashed, self._clock.now())
        if found is None:
            self._right.pop(hashed, None)
            self._throttle.failed(address)
            log.warning("api_tokens.refused", client=address)
            return None
        self._right[hashed] = None
        self._right.move_to_end(hashed)
        if len(self._right) > _MOST_KNOWN:
            self._right.popitem(last=False)
        return found.caller

    def _make(self, connection: Connection, new: ApiToken, token_hash: str) -> ApiToken:
        # Held, so that the group cannot be deleted before the token is one of its.
        if new.group_id is not None and get_group(connection, self._zone, new.group_id, lock=True) is None:
            raise NotFoundError("group", new.group_id)
        made = replace(new, id=insert_api_token(connection, new, token_hash))
        self._record(connection, EventKind.TOKEN_MADE, made, new.created_by)
        return made

    def _revoke(self, connection: Connection, token_id: ApiTokenId, actor: str) -> None:
        revoked = take_api_token(connection, token_id)
        if revoked is None:
            raise NotFoundError("API token", token_id)
        self._record(connection, EventKind.TOKEN_REVOKED, revoked, actor)

    def _record(self, connection: Connection, kind: EventKind, token: ApiToken, actor: str) -> None:
        expires = None if token.expires_ms is None else instant_text(token.expires_ms)
        details = {"token": token.id, "name": token.name, "access": access_name(token.right), "expires_at": expires}
        insert_event(connection, NewEvent(kind, self._clock.now(), actor, token.group_id, details=details))


def access_name(right: Right) -> str:
    """What the API calls what a token is for."""
    return next(name for name, each in ACCESSES.items() if each is right)


def _hashed(token: str) -> str:
    # The token is random, so a plain hash cannot be searched.
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()
