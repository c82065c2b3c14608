"""Which admin a command speaks to, and with which session or token."""

import os
from typing import Annotated

import typer

from jobwheel.cli.errors import ApiTokenRefusedError, NotSignedInError
from jobwheel.cli.rest import DEFAULT_URL, Rest, checked_url
from jobwheel.cli.session_file import SessionFile, session_path
from jobwheel.kernel.secret import Secret

TOKEN_VARIABLE = "JOBWHEEL_TOKEN"  # noqa: S105 - the name of the variable

UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="JOBWHEEL_URL",
        show_default=False,
        help=f"The admin's address [default: the one of the last login, else {DEFAULT_URL}].",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=500, help="How many at most.")]
AfterOption = Annotated[
    str | None, typer.Option("--after", show_default=False, help="Where the page before ended: its `next`.")
]


def session_file() -> SessionFile:
    """The file of this user."""
    return SessionFile(session_path(os.environ))


def chosen_url(url: str | None) -> str:
    """The admin that is meant.

    Raises:
        AdminUrlError: its address is none.
    """
    return checked_url(url or session_file().current or DEFAULT_URL)


def ca_file() -> str | None:
    """Whom an https admin must be vouched for by, if not by the system's authorities."""
    return os.environ.get("JOBWHEEL_CA_FILE") or None


def signed_in(url: str | None) -> Rest:
    """The admin, with the API token of the environment, else with the stored session.

    Raises:
        NotSignedInError: there is neither.
    """
    chosen = chosen_url(url)
    api_token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if api_token and not (api_token.isascii() and api_token.isprintable()):
        # No header could carry it.
        raise ApiTokenRefusedError(chosen)
    if api_token:
        return Rest(chosen, None, ca_file(), api_token=Secret(api_token))
    session = session_file().find(chosen)
    if session is None:
        raise NotSignedInError(chosen)
    return Rest(chosen, session.token, ca_file())
