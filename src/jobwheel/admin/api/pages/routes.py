"""The routes of the status page."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from fastapi import APIRouter, Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse

from jobwheel import __version__
from jobwheel.admin.api.caller import client_of, language_of, session_of, token_of
from jobwheel.admin.api.identity import COOKIE
from jobwheel.admin.api.pages.view import status_view
from jobwheel.admin.api.services import Services
from jobwheel.admin.api.sessions import set_session_cookie
from jobwheel.admin.domain.caller import Caller
from jobwheel.admin.services.errors import SignInRefusedError, SignInThrottledError
from jobwheel.kernel.secret import Secret

_PACKAGE: Final = "jobwheel.admin.api.pages"


def page_router(services: Services) -> APIRouter:
    """The status page, the sign-in form, and their style sheet."""
    router = APIRouter(include_in_schema=False)
    templates = Environment(loader=PackageLoader(_PACKAGE), autoescape=True, undefined=StrictUndefined)
    style = files(_PACKAGE).joinpath("style.css").read_bytes()

    def render(name: str, values: Mapping[str, object], status: int = 200) -> HTMLResponse:
        return HTMLResponse(templates.get_template(name).render(version=__version__, **values), status)

    @router.get("/")
    async def index(request: Request) -> Response:
        session = session_of(request)
        if session is None:
            return render("sign_in.html", {"problem": None, "name": ""})
        view = await status_view(services, language_of(request), Caller.of_user(session.user))
        return render("status.html", {"view": view, "user": session.user})

    @router.post("/sign-in")
    async def sign_in(request: Request) -> Response:
        form = await request.form()
        name, password = str(form.get("username", "")), str(form.get("password", ""))
        try:
            signed_in = await services.sign_in.sign_in(
                name[:50], Secret(password[:1024]), client_of(request), stay_signed_in=bool(form.get("stay_signed_in"))
            )
        except SignInRefusedError as error:
            return render("sign_in.html", {"problem": error.message, "name": name[:50]}, 401)
        except SignInThrottledError as error:
            response = render("sign_in.html", {"problem": error.message, "name": name[:50]}, 429)
            response.headers["Retry-After"] = str(error.retry_after_s)
            return response
        redirect = RedirectResponse("/", 303)
        set_session_cookie(request, redirect, signed_in)
        return redirect

    @router.post("/sign-out")
    async def sign_out(request: Request) -> Response:
        token = token_of(request)
        if token is not None:
            await services.sign_in.sign_out(token)
        redirect = RedirectResponse("/", 303)
        redirect.delete_cookie(COOKIE, path="/")
        return redirect

    @router.get("/assets/style.css")
    async def style_sheet() -> Response:
        return Response(style, media_type="text/css", headers={"Cache-Control": "max-age=300"})

    return router
