"""Mails: to the channel's own addresses, and to those of the job."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from html import escape
from typing import Any

from jobwheel.admin.alarms.channel import Alarm, ChannelTools
from jobwheel.admin.alarms.errors import ChannelError
from jobwheel.admin.alarms.mail_server import MailAccount, MailServer
from jobwheel.admin.alarms.settings import ChannelSetting, SettingRefusedError, SettingType
from jobwheel.kernel.clock import Clock

_PORTS: Mapping[str, int] = {"none": 25, "starttls": 587, "tls": 465}
_STYLE = "text-align:left;vertical-align:top;padding:2px 12px 2px 0"


class Mail:
    """The kind `mail`."""

    settings = (
        ChannelSetting("host", SettingType.TEXT, required=True),
        ChannelSetting("port", SettingType.NUMBER),
        ChannelSetting("security", SettingType.TEXT, default="starttls", choices=tuple(_PORTS)),
        ChannelSetting("username", SettingType.TEXT),
        ChannelSetting("password", SettingType.SECRET),
        ChannelSetting("from", SettingType.EMAIL, required=True),
        ChannelSetting("to", SettingType.EMAILS),
    )
    reads_emails = True

    def make(self, values: Mapping[str, Any], tools: ChannelTools) -> "MailChannel":
        security, username, password = values["security"], values.get("username"), values.get("password")
        if (username is None) != (password is None):
            raise SettingRefusedError("password" if password is None else "username", "is needed too, for the login")
        if username is not None and security == "none":
            raise SettingRefusedError("security", "none would send the password in clear: use starttls or tls")
        host = values["host"]
        if not all(each.isalnum() or each in ".-:_" for each in host):
            raise SettingRefusedError("host", "is not the name or the address of a host")
        account = MailAccount(host, values.get("port") or _PORTS[security], security, username, password)
        return MailChannel(tools.mail, tools.clock, account, values["from"], tuple(values.get("to") or ()))


@dataclass(frozen=True, slots=True)
class MailChannel:
    """One server, one sender; `recipients` get every alarm of the channel."""

    server: MailServer
    clock: Clock
    account: MailAccount
    sender: str
    recipients: tuple[str, ...]

    async def send(self, alarm: Alarm) -> str:
        recipients = tuple(dict.fromkeys((*self.recipients, *alarm.emails)))
        if not recipients:
            raise ChannelError("there is nobody to send to: neither the channel nor the job names an address")
        return await self.server.deliver(self.account, self._mail(alarm, recipients), recipients)

    def _mail(self, alarm: Alarm, recipients: tuple[str, ...]) -> EmailMessage:
        mail = EmailMessage()
        mail["Subject"] = alarm.title
        mail["From"] = self.sender
        mail["To"] = ", ".join(recipients)
        mail["Date"] = format_datetime(datetime.fromtimestamp(self.clock.now() / 1000, UTC))
        mail["Message-ID"] = make_msgid(domain=self.sender.partition("@")[2])
        # Answers of machines that are on holiday are of no use to anybody.
        mail["Auto-Submitted"] = "auto-generated"
        link = "" if alarm.link is None else f"\n\n{alarm.link}"
        mail.set_content(alarm.text + link + "\n")
        mail.add_alternative(_html(alarm), subtype="html")
        return mail


def _html(alarm: Alarm) -> str:
    rows = "".join(
        f'<tr><th style="{_STYLE}">{escape(name)}</th>'
        f'<td style="{_STYLE};white-space:pre-wrap">{escape(value)}</td></tr>'
        for name, value in alarm.lines
    )
    link = "" if alarm.link is None else f'<p><a href="{escape(alarm.link)}">{escape(alarm.link)}</a></p>'
    colour = "#1a7f37" if alarm.is_good else "#b42318"
    return (
        f'<html><body style="font-family:sans-serif"><h2 style="color:{colour}">{escape(alarm.title)}</h2>'
        f"<table>{rows}</table>{link}</body></html>\n"
    )
