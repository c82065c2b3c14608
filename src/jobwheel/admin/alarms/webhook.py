"""Webhooks of any kind: method, headers and a body from a template."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from jobwheel.admin.alarms.channel import Alarm, ChannelTools
from jobwheel.admin.alarms.errors import ChannelError
from jobwheel.admin.alarms.http import HttpSender
from jobwheel.admin.alarms.settings import ChannelSetting, SettingType
from jobwheel.admin.alarms.template import check_template, render

_JSON: Final = "application/json; charset=utf-8"


class Webhook:
    """The kind `webhook`: without a template, the body is a JSON object of all fields."""

    settings = (
        ChannelSetting("url", SettingType.URL, required=True),
        ChannelSetting("method", SettingType.TEXT, default="POST", choices=("POST", "PUT", "PATCH")),
        ChannelSetting("headers", SettingType.HEADERS),
        ChannelSetting("body", SettingType.LINES),
    )
    reads_emails = False

    def make(self, values: Mapping[str, Any], tools: ChannelTools) -> "WebhookChannel":
        headers = {"Content-Type": _JSON}
        for name, value in (values.get("headers") or {}).items():
            headers["Content-Type" if name.lower() == "content-type" else name] = value
        channel = WebhookChannel(tools.http, values["url"], values["method"], headers, values.get("body"))
        if channel.body is not None:
            check_template("body", channel.body, as_json=channel.is_json)
        return channel


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    """One address. Any reply of 2xx is a yes; a redirect is none."""

    http: HttpSender
    url: str
    method: str
    headers: Mapping[str, str]
    body: str | None

    @property
    def is_json(self) -> bool:
        return "json" in self.headers["Content-Type"].lower()

    async def send(self, alarm: Alarm) -> str:
        if self.body is None:
            body = json.dumps(dict(alarm.fields), ensure_ascii=False)
        else:
            body = render(self.body, alarm.fields, as_json=self.is_json)
        reply = await self.http.send(self.method, self.url, body.encode(), self.headers)
        if not reply.is_success:
            raise ChannelError(reply.shown)
        return reply.shown
