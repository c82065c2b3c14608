"""A real SMTP server on loopback, in the test's own loop; it keeps what it is sent."""

import asyncio
import ssl
import warnings
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from types import TracebackType
from typing import Any, Self, cast

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.support.accepting import all_accepted, all_closed


@dataclass
class SmtpServer:
    """Takes mails; with a password it takes those of the user `jobwheel` alone, and refuses some recipients."""

    tls: ssl.SSLContext | None = None
    implicit_tls: bool = False
    password: str | None = None
    refused: frozenset[str] = frozenset()
    mails: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    port: int = 0
    _server: asyncio.Server | None = None
    _connections: list[SMTP] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        tls = self.tls if self.implicit_tls else None
        self._server = await loop.create_server(self._protocol, "127.0.0.1", 0, ssl=tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        await all_accepted()
        # A client may not have heard the last word yet.
        for connection in self._connections:
            if connection.transport is not None:
                cast("asyncio.WriteTransport", connection.transport).abort()
        await all_closed(self._server)

    def _protocol(self) -> SMTP:
        options: dict[str, Any] = {"hostname": "mail.test", "enable_SMTPUTF8": True}
        if self.tls is not None and not self.implicit_tls:
            options |= {"tls_context": self.tls, "require_starttls": True}
        if self.password is not None:
            options |= {
                "auth_required": True,
                "auth_require_tls": self.tls is not None and not self.implicit_tls,
                "authenticator": self._authenticate,
            }
        with warnings.catch_warnings():
            # It does not know that TLS may be there from the beginning.
            warnings.simplefilter("ignore")
            connection = SMTP(self, loop=asyncio.get_running_loop(), **options)
        self._connections.append(connection)
        return connection

    def _authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any
    ) -> AuthResult:
        given = cast("LoginPassword", data)
        good = given.login == b"jobwheel" and given.password == (self.password or "").encode()
        # Not handled: the server says itself that it was no good.
        return AuthResult(success=good, handled=False)

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refused:
            return "550 nobody of that name"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - the same
        data = envelope.content
        assert isinstance(data, bytes)
        mail = message_from_bytes(data, policy=default)
        self.mails.append((list(envelope.rcpt_tos), mail))
        return "250 taken as 4711"
