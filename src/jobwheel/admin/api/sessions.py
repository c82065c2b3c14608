"""`/api/v1/session`: signing in and out."""

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from jobwheel.admin.api.caller import ClientInfo, SignedInSession, token_of
from jobwheel.admin.api.identity import COOKIE
from jobwheel.admin.api.instants import to_text
from jobwheel.admin.api.models import Body
from jobwheel.admin.services.sign_in import SignedIn, SignIn
from jobwheel.kernel.secret import Secret


class SignInBody(Body):
    """Who wants to sign in."""

    username: str = Field(min_length=1, max_length=50)
    password: str = Field(min_length=1, max_length=1024)
    stay_signed_in: bool = False


class PasswordBody(Body):
    """A change of one's own password."""

    old_password: str = Field(min_length=1, max_length=1024)
    new_password: str = Field(min_length=1, max_length=1024)


class SessionView(BaseModel):
    """Whose session it is, and until when."""

    username: str
    role: str
    expires_at: str


def session_router(sign_in: SignIn) -> APIRouter:
    """The routes of sessions."""
    router = APIRouter(prefix="/session", tags=["session"])

    @router.post("", status_code=201)
    async def sign_in_(body: SignInBody, request: Request, response: Response, client: ClientInfo) -> SessionView:
        signed_in = await sign_in.sign_in(
            body.username, Secret(body.password), client, stay_signed_in=body.stay_signed_in
        )
        set_session_cookie(request, response, signed_in)
        return SessionView(
            username=signed_in.user.name, role=signed_in.user.role.value, expires_at=to_text(signed_in.expires_ms)
        )

    @router.get("")
    async def who_am_i(session: SignedInSession) -> SessionView:
        user = session.user
        return SessionView(username=user.name, role=user.role.value, expires_at=to_text(session.expires_ms))

    @router.delete("", status_code=204)
    async def sign_out(request: Request, response: Response) -> None:
        token = token_of(request)
        if token is not None:
            await sign_in.sign_out(token)
        response.delete_cookie(COOKIE, path="/")

    @router.post("/password", status_code=204)
    async def change_password(
        body: PasswordBody, session: SignedInSession, client: ClientInfo, response: Response
    ) -> None:
        await sign_in.change_password(session.user, Secret(body.old_password), Secret(body.new_password), client)
        response.delete_cookie(COOKIE, path="/")

    return router


def set_session_cookie(request: Request, response: Response, signed_in: SignedIn) -> None:
    """Give the session's token to the browser; scripts cannot read it, other sites cannot send it with a change."""
    response.set_cookie(
        COOKIE,
        signed_in.token.reveal(),
        max_age=signed_in.lasts_s,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
