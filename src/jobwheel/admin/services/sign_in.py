"""Signing in and out, and whose session a request carries."""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Final

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.user import User
from jobwheel.admin.services.errors import NotFoundError, SignInRefusedError, WrongPasswordError
from jobwheel.admin.services.passwords import Passwords, check_new_password
from jobwheel.admin.services.throttle import SignInThrottle
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import insert_event
from jobwheel.admin.store.sessions import (
    LiveSession,
    NewSession,
    delete_session,
    delete_sessions_of,
    find_session,
    insert_session,
)
from jobwheel.admin.store.users import find_user, set_password_hash
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.secret import Secret

log = get_logger(__name__)

SESSION_S: Final = 12 * 3600
LONG_SESSION_S: Final = 7 * 24 * 3600
_TOKEN_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks: the network address, and what the program calls itself."""

    address: str
    program: str = ""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A new session. `token` is given out here and never again; the database has only its hash."""

    token: Secret
    user: User
    expires_ms: int
    lasts_s: int


class SignIn:
    """The use cases of sessions."""

    def __init__(self, database: Database, clock: Clock, passwords: Passwords) -> None:
        self._database = database
        self._clock = clock
        self._passwords = passwords
        self._throttle = SignInThrottle(clock)

    async def sign_in(self, name: str, password: Secret, client: Client, *, stay_signed_in: bool = False) -> SignedIn:
        """Check a name and a password and make a session.

        Raises:
            SignInRefusedError: no such user, wrong password, or a disabled user: the same answer after the same work.
            SignInThrottledError: too many failures of this name or from this address; the password is not looked at.
        """
        self._throttle.begin(name, client.address)
        found = await self._database.read(find_user, name)
        right = await self._passwords.verify(found.password_hash if found else None, password)
        if not right or found is None or found.user.disabled:
            # Without the name: now and then somebody types his password there.
            log.warning("sign_in.refused", client=client.address)
            raise SignInRefusedError
        self._throttle.succeeded(name, client.address)
        lasts_s = LONG_SESSION_S if stay_signed_in else SESSION_S
        return await self._database.write(self._open, found.user, client, lasts_s)

    async def open_session(self, name: str, client: Client) -> SignedIn:
        """Make a session without a password: for programs of the operator, who has the database itself.

        Raises:
            NotFoundError: there is no such user, or he is disabled.
        """
        found = await self._database.read(find_user, name)
        if found is None or found.user.disabled:
            raise NotFoundError("user", repr(name))
        return await self._database.write(self._open, found.user, client, SESSION_S)

    async def find(self, token: str) -> LiveSession | None:
        """The session that a token opens, if it is alive."""
        return await self._database.read(find_session, _hashed(token), self._clock.now())

    async def sign_out(self, token: str) -> None:
        """End the session of a token; nothing if there is none."""
        await self._database.write(self._close, token)

    async def change_password(self, user: User, old: Secret, new: Secret, client: Client) -> None:
        """Replace a user's own password and end all his sessions.

        Raises:
            WrongPasswordError: the old password is wrong.
            SignInThrottledError: it was wrong too often.
            InvalidFieldError: the new one is too short or too long.
        """
        check_new_password("new_password", new)
        self._throttle.begin(user.name, client.address)
        found = await self._database.read(find_user, user.name)
        if found is None or not await self._passwords.verify(found.password_hash, old):
            raise WrongPasswordError
        self._throttle.succeeded(user.name, client.address)
        await self._database.write(
            replace_password, user, await self._passwords.hash(new), user.name, self._clock.now()
        )

    def _open(self, connection: Connection, user: User, client: Client, lasts_s: int) -> SignedIn:
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        now_ms = self._clock.now()
        expires_ms = now_ms + lasts_s * 1000
        insert_session(connection, NewSession(_hashed(token), user.id, now_ms, expires_ms, client.program[:255]))
        details = {"from": client.address}
        insert_event(connection, NewEvent(EventKind.USER_SIGNED_IN, now_ms, user.name, details=details))
        return SignedIn(Secret(token), user, expires_ms, lasts_s)

    def _close(self, connection: Connection, token: str) -> None:
        now_ms = self._clock.now()
        session = find_session(connection, _hashed(token), now_ms)
        if delete_session(connection, _hashed(token)) and session is not None:
            insert_event(connection, NewEvent(EventKind.USER_SIGNED_OUT, now_ms, session.user.name))


def replace_password(connection: Connection, user: User, password_hash: str, actor: str, now_ms: int) -> None:
    """Store a new password and end the user's sessions, in one transaction."""
    set_password_hash(connection, user.id, password_hash)
    ended = delete_sessions_of(connection, user.id)
    details = {"user": user.name, "sessions_ended": ended}
    insert_event(connection, NewEvent(EventKind.USER_PASSWORD_CHANGED, now_ms, actor, details=details))


def _hashed(token: str) -> str:
    # The token is random, so a plain hash cannot be searched.
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()
