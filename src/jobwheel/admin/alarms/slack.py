"""Incoming webhooks of Slack, and of chat systems that take the same."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from jobwheel.admin.alarms.channel import Alarm, ChannelTools
from jobwheel.admin.alarms.errors import ChannelError
from jobwheel.admin.alarms.http import HttpSender
from jobwheel.admin.alarms.robots import URL, post_json, text_with_link

_MOST_BYTES: Final = 30_000


class Slack:
    """The kind `slack`."""

    settings = (URL,)
    reads_emails = False

    def make(self, values: Mapping[str, Any], tools: ChannelTools) -> "SlackChannel":
        return SlackChannel(tools.http, values["url"])


@dataclass(frozen=True, slots=True)
class SlackChannel:
    """One webhook; its secret is in the address."""

    http: HttpSender
    url: str

    async def send(self, alarm: Alarm) -> str:
        # These three begin what Slack would read as more than a text: mentions of everybody, links.
        plain = replace(
            alarm, title=_escaped(alarm.title), lines=[(_escaped(name), _escaped(value)) for name, value in alarm.lines]
        )
        reply = await post_json(self.http, self.url, {"text": text_with_link(plain, _MOST_BYTES)})
        if not reply.is_success:
            raise ChannelError(reply.shown)
        return reply.shown


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
