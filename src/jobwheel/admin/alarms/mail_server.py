"""Sending mail by SMTP."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Final, Literal

import aiosmtplib

from jobwheel.admin.alarms.addresses import Resolver
from jobwheel.admin.alarms.errors import ChannelError

Security = Literal["none", "starttls", "tls"]
_MOST_SHOWN: Final = 300


@dataclass(frozen=True, slots=True)
class MailAccount:
    """A server, and as whom to speak to it; without a user name nobody signs in."""

    host: str
    port: int
    security: Security
    username: str | None = None
    password: str | None = None


class MailServer:
    """Delivers mails, each over a connection of its own.

    Args:
        resolver: looks names up; whoever made it closes it.
        timeout_s: how long a mail may take in all.
        tls: whom to trust; None = the system's authorities.
    """

    def __init__(self, resolver: Resolver, *, timeout_s: float = 20.0, tls: ssl.SSLContext | None = None) -> None:
        self._resolver = resolver
        self._timeout_s = timeout_s
        self._tls = tls

    async def deliver(self, account: MailAccount, mail: EmailMessage, recipients: Sequence[str]) -> str:
        """Hand a mail to the server; return what it said.

        Raises:
            ChannelError: it was not taken, or not for all recipients; says why.
        """
        if self._tls is None:
            # Reading the system's authorities takes a while, and a MiB: who sends no mail has neither.
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._deliver(account, mail, recipients)
        except TimeoutError as error:
            raise ChannelError(f"{account.host}:{account.port} took longer than {self._timeout_s:g} s") from error
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            reason = " ".join((str(error) or type(error).__name__).split())[:_MOST_SHOWN]
            raise ChannelError(f"{account.host}:{account.port}: {reason}") from error

    async def _deliver(self, account: MailAccount, mail: EmailMessage, recipients: Sequence[str]) -> str:
        peer = await self._connect(account)
        client = aiosmtplib.SMTP(
            hostname=account.host,
            sock=peer,
            timeout=self._timeout_s,
            use_tls=account.security == "tls",
            start_tls=account.security == "starttls",
            tls_context=self._tls,
        )
        try:
            await client.connect()
            if account.username is not None:
                await client.login(account.username, account.password or "")
            refused, said = await client.send_message(mail, recipients=list(recipients))
            with contextlib.suppress(aiosmtplib.SMTPException, OSError):
                await client.quit()
        finally:
            # With it the socket, which is the connection's since it was given away.
            client.close()
        if refused:
            named = ", ".join(f"{address} ({answer.message})" for address, answer in refused.items())
            raise ChannelError(f"{account.host}:{account.port} refused {named}"[:_MOST_SHOWN])
        return " ".join(said.split())[:_MOST_SHOWN]

    async def _connect(self, account: MailAccount) -> socket.socket:
        loop = asyncio.get_running_loop()
        failure: OSError = OSError(f"{account.host} has no address")
        for address in await self._resolver.resolve(account.host, account.port):
            peer = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
            peer.settimeout(0.0)
            try:
                await loop.sock_connect(peer, (address, account.port))
            except OSError as error:
                peer.close()
                failure = error
            except BaseException:
                peer.close()
                raise
            else:
                return peer
        raise failure
