"""Robots of DingTalk groups, with the signature that their security settings may ask for."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus

from jobwheel.admin.alarms.channel import Alarm, ChannelTools
from jobwheel.admin.alarms.robots import SECRET, URL, Robot, text_with_link
from jobwheel.kernel.clock import Clock

_MOST_BYTES: Final = 18_000


class DingTalk:
    """The kind `dingtalk`."""

    settings = (URL, SECRET)
    reads_emails = False

    def make(self, values: Mapping[str, Any], tools: ChannelTools) -> "DingTalkChannel":
        return DingTalkChannel(Robot(tools.http, ("errcode",)), tools.clock, values["url"], values.get("secret"))


@dataclass(frozen=True, slots=True)
class DingTalkChannel:
    """One robot; with a secret each request is signed."""

    robot: Robot
    clock: Clock
    url: str
    secret: str | None

    async def send(self, alarm: Alarm) -> str:
        url = self.url if self.secret is None else f"{self.url}{self._signature(self.secret)}"
        content = text_with_link(alarm, _MOST_BYTES)
        return await self.robot.post(url, {"msgtype": "text", "text": {"content": content}})

    def _signature(self, secret: str) -> str:
        """The moment in milliseconds, and what it and the secret make: HMAC-SHA256, keyed with the secret."""
        at_ms = self.clock.now()
        digest = hmac.new(secret.encode(), f"{at_ms}\n{secret}".encode(), hashlib.sha256).digest()
        mark = "&" if "?" in self.url else "?"
        return f"{mark}timestamp={at_ms}&sign={quote_plus(base64.b64encode(digest))}"
