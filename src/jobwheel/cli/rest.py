"""The admin's REST API, as commands use it."""

import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from jobwheel.cli.errors import (
    AdminUnreachableError,
    AdminUrlError,
    ApiTokenRefusedError,
    CaFileError,
    NotSignedInError,
    RefusedError,
    UnreadableReplyError,
)
from jobwheel.kernel.secret import Secret

if TYPE_CHECKING:
    import httpx

COOKIE: Final = "jobwheel_session"
DEFAULT_URL: Final = "http://127.0.0.1:8080"
_TIMEOUT_S: Final = 30.0


class Rest:
    """One admin, with a session if `token` is given, or with an API token. A context manager.

    Raises:
        CaFileError: `ca_file` holds no certificates.
    """

    def __init__(
        self,
        url: str,
        token: Secret | None,
        ca_file: str | None = None,
        timeout_s: float = _TIMEOUT_S,
        *,
        api_token: Secret | None = None,
    ) -> None:
        # Not with the module: `jobwheel admin` asks nobody, and would hold 8 MiB of it as long as it runs.
        import httpx  # noqa: PLC0415 - see above

        self.url = url
        self._has_api_token = api_token is not None
        # Proxies of the environment would see the session, and would be asked for 127.0.0.1 as well.
        self._http = httpx.Client(
            base_url=url, timeout=timeout_s, trust_env=False, verify=_authorities(ca_file or None)
        )
        if token is not None:
            self._http.headers["Cookie"] = f"{COOKIE}={token.reveal()}"
        if api_token is not None:
            self._http.headers["Authorization"] = f"Bearer {api_token.reveal()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def get(self, path: str, query: Mapping[str, object] | None = None) -> Any:
        """The JSON of a reply; what is None in the query is left out, a list is repeated.

        Raises:
            JobwheelError: the admin is not there, knows no such session, or refuses.
        """
        given = {
            name: [str(each) for each in value] if isinstance(value, list) else str(value)
            for name, value in (query or {}).items()
            if value is not None
        }
        return self._json(self._send("GET", path, params=given))

    def post(self, path: str, body: Mapping[str, object] | None = None, timeout_s: float | None = None) -> Any:
        """The JSON of a reply; `timeout_s` for what takes longer than usual.

        Raises:
            JobwheelError: as for `get`.
        """
        content: dict[str, Any] = {} if timeout_s is None else {"timeout": timeout_s}
        return self._json(self._send("POST", path, json=dict(body or {}), **content))

    def patch(self, path: str, body: Mapping[str, object]) -> Any:
        """The JSON of a reply.

        Raises:
            JobwheelError: as for `get`.
        """
        return self._json(self._send("PATCH", path, json=dict(body)))

    def put(self, path: str, body: Mapping[str, object]) -> Any:
        """The JSON of a reply.

        Raises:
            JobwheelError: as for `get`.
        """
        return self._json(self._send("PUT", path, json=dict(body)))

    def delete(self, path: str) -> Any:
        """Delete what is there; return the JSON of the reply, None if it says nothing.

        Raises:
            JobwheelError: as for `get`.
        """
        reply = self._send("DELETE", path)
        return self._json(reply) if reply.content else None

    def sign_in(self, username: str, password: Secret) -> tuple[Secret, dict[str, Any]]:
        """Sign in; return the session's token and what the admin says about it.

        Raises:
            JobwheelError: as for `get`; `RefusedError` if name or password is wrong.
        """
        body = {"username": username, "password": password.reveal()}
        reply = self._send("POST", "/api/v1/session", json=body)
        token = reply.cookies.get(COOKIE)
        if token is None:
            raise UnreadableReplyError(self.url, reply.status_code)
        return Secret(token), self._json(reply)

    def _send(self, method: str, path: str, **content: Any) -> "httpx.Response":
        import httpx  # noqa: PLC0415 - it is loaded by now

        try:
            reply = self._http.request(method, path, **content)
        except httpx.TransportError as error:
            raise AdminUnreachableError(self.url, str(error) or type(error).__name__) from error
        if reply.is_success:
            return reply
        refusal = self._refusal(reply)
        if refusal.reason == "not_signed_in" and self._has_api_token:
            raise ApiTokenRefusedError(self.url)
        if refusal.reason == "not_signed_in":
            raise NotSignedInError(self.url)
        raise refusal

    def _refusal(self, reply: "httpx.Response") -> RefusedError:
        try:
            error = reply.json()["error"]
            return RefusedError(reply.status_code, error["code"], error["message"], error.get("field"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnreadableReplyError(self.url, reply.status_code) from error

    def _json(self, reply: "httpx.Response") -> Any:
        try:
            return reply.json()
        except ValueError as error:
            raise UnreadableReplyError(self.url, reply.status_code) from error


def _authorities(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        if ca_file is None:
            raise
        raise CaFileError(ca_file, error.strerror or str(error)) from error


def checked_url(url: str) -> str:
    """An admin's address without a slash at the end.

    Raises:
        AdminUrlError: it is none.
    """
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError as error:
        raise AdminUrlError(url) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
        raise AdminUrlError(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
