"""Robots of WeCom (WeChat Work) groups."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from jobwheel.admin.alarms.channel import Alarm, ChannelTools
from jobwheel.admin.alarms.robots import URL, Robot, text_with_link

_MOST_BYTES: Final = 2048


class WeCom:
    """The kind `wecom`."""

    settings = (URL,)
    reads_emails = False

    def make(self, values: Mapping[str, Any], tools: ChannelTools) -> "WeComChannel":
        return WeComChannel(Robot(tools.http, ("errcode",)), values["url"])


@dataclass(frozen=True, slots=True)
class WeComChannel:
    """One robot; its key is in the address."""

    robot: Robot
    url: str

    async def send(self, alarm: Alarm) -> str:
        content = text_with_link(alarm, _MOST_BYTES)
        return await self.robot.post(self.url, {"msgtype": "text", "text": {"content": content}})
