"""What the robots of chat systems have in common: one address to post JSON to, one text, one reply with a code."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jobwheel.admin.alarms.channel import Alarm
from jobwheel.admin.alarms.errors import ChannelError
from jobwheel.admin.alarms.http import HttpReply, HttpSender
from jobwheel.admin.alarms.settings import ChannelSetting, SettingType

URL: Final = ChannelSetting("url", SettingType.URL, required=True)
SECRET: Final = ChannelSetting("secret", SettingType.SECRET)

_CUT: Final = "…"


@dataclass(frozen=True, slots=True)
class Robot:
    """A robot: where it is posted to, and in which field of its reply 0 means success."""

    http: HttpSender
    code_names: tuple[str, ...]

    async def post(self, url: str, body: Mapping[str, object]) -> str:
        """Post a message; return what was said to it.

        Raises:
            ChannelError: the robot did not take it; says what it said.
        """
        reply = await post_json(self.http, url, body)
        code = _code(reply.text, self.code_names)
        if not reply.is_success or code != 0:
            raise ChannelError(reply.shown)
        return reply.shown


async def post_json(http: HttpSender, url: str, body: Mapping[str, object]) -> HttpReply:
    """Post a JSON object."""
    data = json.dumps(body, ensure_ascii=False).encode()
    return await http.send("POST", url, data, {"Content-Type": "application/json; charset=utf-8"})


def text_with_link(alarm: Alarm, most_bytes: int) -> str:
    """The alarm as plain text, cut to so many bytes of UTF-8; the link stays whole."""
    link = "" if alarm.link is None else f"\n{alarm.link}"
    room = most_bytes - len(link.encode())
    data = alarm.text.encode()
    if len(data) > room:
        data = data[: room - len(_CUT.encode())]
        return data.decode(errors="ignore") + _CUT + link
    return alarm.text + link


def _code(text: str, names: tuple[str, ...]) -> object:
    try:
        reply = json.loads(text)
    except ValueError:
        return None
    if not isinstance(reply, dict):
        return None
    return next((reply[name] for name in names if name in reply), None)
