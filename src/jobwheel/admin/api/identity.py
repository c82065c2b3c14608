"""Who sends a request, and whether the access table lets him pass."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final

from starlette.datastructures import Headers

from jobwheel.admin.api.access import Found, Who
from jobwheel.admin.domain.caller import Caller, Right
from jobwheel.admin.services.api_tokens import ApiTokens
from jobwheel.admin.services.belonging import KINDS, Belonging, check_right
from jobwheel.admin.services.errors import ForbiddenError, NotFoundError, NotSignedInError
from jobwheel.admin.services.sign_in import SignIn
from jobwheel.admin.store.sessions import LiveSession
from jobwheel.kernel.secret import Secret

COOKIE: Final = "jobwheel_session"

_TAKES_TOKENS: Final = frozenset({Who.CALLER, Who.READ, Who.WRITE, Who.SCRIPTS, Who.ALL_GROUPS, Who.ADMIN})
_RIGHTS: Final[Mapping[Who, Right]] = {
    Who.READ: Right.READ,
    Who.WRITE: Right.WRITE,
    Who.SCRIPTS: Right.SCRIPTS,
    Who.ALL_GROUPS: Right.WRITE,
}
# As strict as can be: what a route might read as a number, and this not, would pass unseen.
_INSTEAD: Final[Mapping[Who, str]] = {
    Who.SIGNED_IN: "",
    Who.METRICS: "send the token in JOBWHEEL_METRICS_TOKEN; API tokens do not read metrics",
}
"""What who is not signed in may do where an API token is of no use."""

_ID: Final = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Asker:
    """Whoever asks: a session with its token, or an API token, or neither (a guest)."""

    caller: Caller | None = None
    session: LiveSession | None = None
    session_token: str | None = None


GUEST: Final = Asker()


def uses_token(who: Who, headers: Headers) -> bool:
    """Whether a request comes with an API token, so that its cookie is not looked at."""
    return who in _TAKES_TOKENS and bearer_token(headers) is not None


def bearer_token(headers: Headers) -> str | None:
    """The token in the header `Authorization`; an empty one is one, too."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def session_token(headers: Headers) -> str | None:
    """The session token of a request's cookie."""
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if cookie is None or not cookie.value else cookie.value


class Doorkeeper:
    """Finds out who asks, and holds him to the access table."""

    def __init__(self, sign_in: SignIn, tokens: ApiTokens, belonging: Belonging, metrics_token: Secret | None) -> None:
        self._sign_in = sign_in
        self._tokens = tokens
        self._belonging = belonging
        self._metrics_token = metrics_token

    async def admit(self, found: Found, headers: Headers, address: str) -> Asker:
        """Who asks, if he may call the route; `address` is where the request comes from.

        Raises:
            NotSignedInError: he must say who he is.
            ForbiddenError: he may not do this.
            NotFoundError: what the path names is not there, or not in one of his groups.
            TooManyGuessesError: too many wrong API tokens came from there.
        """
        who = found.rule.who
        if who is Who.OPEN or (who is Who.METRICS and self._has_metrics_token(headers)):
            return GUEST
        asker = await self._asker(who, headers, address)
        if who is not Who.ANYBODY:
            await self._judge(found, asker)
        return asker

    async def _asker(self, who: Who, headers: Headers, address: str) -> Asker:
        if uses_token(who, headers):
            return Asker(await self._tokens.find(bearer_token(headers) or "", address))
        token = session_token(headers)
        session = None if token is None else await self._sign_in.find(token)
        return Asker(None if session is None else Caller.of_user(session.user), session, token)

    async def _judge(self, found: Found, asker: Asker) -> None:
        caller, who = asker.caller, found.rule.who
        if caller is None:
            raise NotSignedInError(_INSTEAD.get(who, "send a valid API token"))
        if who in (Who.SIGNED_IN, Who.CALLER):
            return
        if who in (Who.ADMIN, Who.METRICS) and not caller.is_admin:
            raise ForbiddenError(_what_he_is(asker, caller))
        if who in _RIGHTS:
            if caller.right is Right.NONE:
                raise ForbiddenError(_what_he_is(asker, caller))
            check_right(caller, _RIGHTS[who])
        await self._check_things(found, caller)
        if who is Who.ALL_GROUPS and not caller.sees_all:
            raise ForbiddenError(f"{caller.name} may change his own groups' jobs and runs alone")

    async def _check_things(self, found: Found, caller: Caller) -> None:
        for kind in KINDS:
            text = found.names.get(f"{kind}_id")
            if text is None or caller.sees_all:
                continue
            if not _ID.fullmatch(text):
                raise NotFoundError(kind, text[:50])
            await self._belonging.check(caller, kind, int(text))

    def _has_metrics_token(self, headers: Headers) -> bool:
        token = bearer_token(headers)
        return token is not None and self._metrics_token is not None and self._metrics_token.matches(token)


def _what_he_is(asker: Asker, caller: Caller) -> str:
    if asker.session is None:
        return f"{caller.name} may not do this: it is for people of the role admin"
    return f"the role {asker.session.user.role} may not do this"
