"""`jobwheel login` and `jobwheel logout`."""

import contextlib
import sys
from typing import Annotated
from urllib.parse import urlsplit

import typer

from jobwheel.cli.access import UrlOption, ca_file, chosen_url, session_file
from jobwheel.cli.errors import NotSignedInError
from jobwheel.cli.output import local_time, tell
from jobwheel.cli.rest import Rest
from jobwheel.cli.session_file import StoredSession
from jobwheel.kernel.secret import Secret

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def login(
    url: UrlOption = None,
    username: Annotated[str, typer.Option("--username", "-u", help="Whose session.")] = "admin",
    stdin: Annotated[bool, typer.Option("--stdin", help="Read the password from standard input.")] = False,
) -> None:
    """Sign in at an admin; the other commands use the session."""
    chosen = chosen_url(url)
    parts = urlsplit(chosen)
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        tell(f"warning: {chosen} is not encrypted; the password can be read on the way")
    password = read_password(f"Password of {username}", from_stdin=stdin, twice=False)
    with Rest(chosen, None, ca_file()) as rest:
        token, reply = rest.sign_in(username, password)
    session_file().keep(StoredSession(chosen, reply["username"], token, reply["expires_at"]))
    tell(f"signed in at {chosen} as {reply['username']} until {local_time(reply['expires_at'])}")


def logout(url: UrlOption = None) -> None:
    """End the session at an admin."""
    chosen = chosen_url(url)
    file = session_file()
    session = file.find(chosen)
    if session is None:
        raise NotSignedInError(chosen)
    # A session that is over there is forgotten here all the same; if the admin is not reached it lives on, so it stays.
    with Rest(chosen, session.token, ca_file()) as rest, contextlib.suppress(NotSignedInError):
        rest.delete("/api/v1/session")
    file.forget(chosen)
    tell(f"signed out at {chosen}")


def read_password(prompt: str, *, from_stdin: bool, twice: bool) -> Secret:
    """A password from the terminal, unseen, or the first line of standard input."""
    if from_stdin:
        return Secret(sys.stdin.readline().rstrip("\r\n"))
    text: str = typer.prompt(prompt, hide_input=True, confirmation_prompt=twice, err=True)
    return Secret(text)
