"""Robots of Feishu and Lark groups, with the signature that their security settings may ask for."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from jobwheel.admin.alarms.channel import Alarm, ChannelTools
from jobwheel.admin.alarms.robots import SECRET, URL, Robot, text_with_link
from jobwheel.kernel.clock import Clock

_MOST_BYTES: Final = 18_000


class Feishu:
    """The kinds `feishu` and `lark`, which differ in their addresses alone."""

    settings = (URL, SECRET)
    reads_emails = False

    def make(self, values: Mapping[str, Any], tools: ChannelTools) -> "FeishuChannel":
        robot = Robot(tools.http, ("code", "StatusCode"))
        return FeishuChannel(robot, tools.clock, values["url"], values.get("secret"))


@dataclass(frozen=True, slots=True)
class FeishuChannel:
    """One robot; with a secret each request is signed."""

    robot: Robot
    clock: Clock
    url: str
    secret: str | None

    async def send(self, alarm: Alarm) -> str:
        signature = {} if self.secret is None else self._signature(self.secret)
        content = {"text": text_with_link(alarm, _MOST_BYTES)}
        return await self.robot.post(self.url, {**signature, "msg_type": "text", "content": content})

    def _signature(self, secret: str) -> dict[str, object]:
        """The moment in seconds; it and the secret are the key of an HMAC-SHA256 of nothing."""
        at_s = self.clock.now() // 1000
        digest = hmac.new(f"{at_s}\n{secret}".encode(), b"", hashlib.sha256).digest()
        return {"timestamp": str(at_s), "sign": base64.b64encode(digest).decode()}
