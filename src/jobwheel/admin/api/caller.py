"""Who asks, as the gate found out."""

from typing import Annotated, cast

from fastapi import Depends, Request

from jobwheel.admin.api.gate import ASKER_KEY
from jobwheel.admin.api.identity import GUEST, Asker
from jobwheel.admin.domain.caller import Caller
from jobwheel.admin.services.sign_in import Client
from jobwheel.admin.store.sessions import LiveSession
from jobwheel.schedule import Language


def session_of(request: Request) -> LiveSession | None:
    """The session of a request; None for a guest."""
    return _asker(request).session


def token_of(request: Request) -> str | None:
    """The session token that a request carries."""
    return _asker(request).session_token


def client_of(request: Request) -> Client:
    """Where a request comes from."""
    address = request.client.host if request.client else "unknown"
    return Client(address, request.headers.get("user-agent", ""))


def language_of(request: Request) -> Language:
    """The first language of ours that the client names, else English."""
    for item in request.headers.get("accept-language", "").split(","):
        tag = item.partition(";")[0].strip().lower()
        if tag.startswith(("zh-tw", "zh-hk", "zh-mo", "zh-hant")):
            return Language.ZH_TW
        if tag.startswith("zh"):
            return Language.ZH_CN
        if tag.startswith("en"):
            return Language.EN
    return Language.EN


def _asker(request: Request) -> Asker:
    return cast("Asker", request.scope.get(ASKER_KEY, GUEST))


def _signed_in(request: Request) -> LiveSession:
    session = session_of(request)
    assert session is not None, "the access table serves this route to people who are signed in"
    return session


def _caller(request: Request) -> Caller:
    caller = _asker(request).caller
    assert caller is not None, "the access table serves this route to callers who are known"
    return caller


def _actor(request: Request) -> str:
    return _caller(request).name


SignedInSession = Annotated[LiveSession, Depends(_signed_in)]
WhoAsks = Annotated[Caller, Depends(_caller)]
"""Who asks, and what he may see and change."""
Actor = Annotated[str, Depends(_actor)]
"""The name of who asks, for the events."""
ClientInfo = Annotated[Client, Depends(client_of)]
PreferredLanguage = Annotated[Language, Depends(language_of)]
