"""The settings of channels: each checked, named when it is wrong, and masked where it is shown."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from jobwheel.wire.client_request import parse_target
from jobwheel.wire.errors import UnreachableError

MASK: Final = "***"
"""Shown instead of a secret; given back, it leaves the secret as it is."""

_MOST_TEXT: Final = 1000
_MOST_LINES_TEXT: Final = 20_000
_MOST_ITEMS: Final = 50
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e]{0,1000}")
_NOT_GIVEN: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "expect", "te", "trailer"}
)
_EMAIL: Final = re.compile(r"[^\s@,;<>\"()\[\]\\:]{1,64}@[A-Za-z0-9.-]{1,190}")


class SettingType(Enum):
    """What a setting holds."""

    TEXT = auto()
    LINES = auto()
    """A text of several lines."""
    SECRET = auto()
    URL = auto()
    """An address of http or https; what stands behind the host may be a secret, and is masked."""
    NUMBER = auto()
    FLAG = auto()
    EMAIL = auto()
    EMAILS = auto()
    HEADERS = auto()
    """Names of HTTP headers and their values, which are masked."""


@dataclass(frozen=True, slots=True)
class ChannelSetting:
    """One setting; without a default (None) and not `required` it may be left out. `most` is that of a number."""

    name: str
    type: SettingType
    required: bool = False
    default: object = None
    choices: tuple[str, ...] = ()
    most: int = 65_535


class SettingRefusedError(Exception):
    """A setting that cannot be used; never repeats a secret."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem


def read_values(
    settings: Sequence[ChannelSetting], given: Mapping[str, Any], stored: Mapping[str, Any]
) -> dict[str, Any]:
    """The values of a channel: what is given, over what is stored. A null takes a value away.

    Raises:
        SettingRefusedError: an unknown name, a value that the setting cannot hold, or one that is missing.
    """
    known = {each.name: each for each in settings}
    for name in given:
        if name not in known:
            raise SettingRefusedError(name, f"is no setting of this kind; valid ones are {', '.join(known)}")
    values = {name: value for name, value in stored.items() if name in known}
    for name, value in given.items():
        if value is None:
            values.pop(name, None)
        else:
            values[name] = _read(known[name], value, stored.get(name))
    for each in settings:
        if each.required and each.name not in values:
            raise SettingRefusedError(each.name, "is required")
        if each.default is not None:
            values.setdefault(each.name, each.default)
    return values


def masked(settings: Sequence[ChannelSetting], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as they may be shown: in replies, in events. Of a kind that is not known, nothing may."""
    known = {each.name: each for each in settings}
    return {name: _masked(known[name], value) if name in known else MASK for name, value in values.items()}


def read_emails(text: str) -> tuple[str, ...]:
    """The addresses in a text, between commas or semicolons; what is none is left out."""
    parts = (part.strip() for part in re.split(r"[,;\s]+", text))
    return tuple(dict.fromkeys(part for part in parts if _EMAIL.fullmatch(part)))


def _masked(setting: ChannelSetting, value: Any) -> Any:
    if setting.type is SettingType.SECRET:
        return MASK
    if setting.type is SettingType.URL:
        return _masked_url(str(value))
    if setting.type is SettingType.HEADERS and isinstance(value, Mapping):
        return dict.fromkeys(value, MASK)
    return value


def _masked_url(url: str) -> str:
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.partition('?')[0]}{slash}{MASK if path or '?' in host else ''}"


def _read(setting: ChannelSetting, value: Any, stored: Any) -> Any:
    if stored is not None and value == _masked(setting, stored) and value != stored:
        return stored
    if setting.type is SettingType.HEADERS and isinstance(value, dict) and isinstance(stored, Mapping):
        value = {name: stored.get(name, each) if each == MASK else each for name, each in value.items()}
    return _READERS[setting.type](setting, value)


def _text(setting: ChannelSetting, value: Any, most: int = _MOST_TEXT, *, lines: bool = False) -> str:
    if not isinstance(value, str):
        raise SettingRefusedError(setting.name, "is not a text")
    if len(value) > most:
        raise SettingRefusedError(setting.name, f"has {len(value)} characters, at most {most} are allowed")
    if not all(each.isprintable() or (lines and each in "\r\n\t") for each in value):
        raise SettingRefusedError(setting.name, "holds a character that is not allowed")
    if not value.strip():
        raise SettingRefusedError(setting.name, "is empty")
    if setting.choices and value not in setting.choices:
        raise SettingRefusedError(setting.name, f"{value[:50]!r} is not one of {', '.join(setting.choices)}")
    return value


def _lines(setting: ChannelSetting, value: Any) -> str:
    return _text(setting, value, _MOST_LINES_TEXT, lines=True)


def _secret(setting: ChannelSetting, value: Any) -> str:
    text = _text(setting, value)
    if text == MASK:
        raise SettingRefusedError(setting.name, f"is {MASK}, which stands for a secret that is not stored here")
    return text


def _url(setting: ChannelSetting, value: Any) -> str:
    text = _text(setting, value)
    if MASK in text:
        raise SettingRefusedError(setting.name, f"holds {MASK}, which stands for what is not shown: give it whole")
    try:
        parse_target(text)
    except UnreachableError as error:
        raise SettingRefusedError(setting.name, f"is not an address of http or https: {error.reason}") from error
    return text


def _number(setting: ChannelSetting, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise SettingRefusedError(setting.name, "is not a whole number")
    if not 1 <= value <= setting.most:
        raise SettingRefusedError(setting.name, f"{value} is not in 1-{setting.most}")
    return value


def _flag(setting: ChannelSetting, value: Any) -> bool:
    if not isinstance(value, bool):
        raise SettingRefusedError(setting.name, "is neither true nor false")
    return value


def _email(setting: ChannelSetting, value: Any) -> str:
    text = _text(setting, value)
    if not _EMAIL.fullmatch(text):
        raise SettingRefusedError(setting.name, f"{text[:100]!r} is not an e-mail address such as ops@example.com")
    return text


def _emails(setting: ChannelSetting, value: Any) -> list[str]:
    if not isinstance(value, list | tuple):
        raise SettingRefusedError(setting.name, "is not a list of e-mail addresses")
    if len(value) > _MOST_ITEMS:
        raise SettingRefusedError(setting.name, f"has {len(value)} addresses, at most {_MOST_ITEMS} are allowed")
    return list(dict.fromkeys(_email(setting, each) for each in value))


def _headers(setting: ChannelSetting, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > _MOST_ITEMS:
        raise SettingRefusedError(setting.name, f"is not an object of at most {_MOST_ITEMS} header names and values")
    for name, each in value.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name) or name.lower() in _NOT_GIVEN:
            raise SettingRefusedError(setting.name, f"{str(name)[:50]!r} is not a header that can be given")
        if not isinstance(each, str) or not _HEADER_VALUE.fullmatch(each) or each == MASK:
            raise SettingRefusedError(setting.name, f"the value of {name} is not a text that a header can hold")
    return dict(value)


_READERS: Final[Mapping[SettingType, Callable[[ChannelSetting, Any], Any]]] = {
    SettingType.TEXT: _text,
    SettingType.LINES: _lines,
    SettingType.SECRET: _secret,
    SettingType.URL: _url,
    SettingType.NUMBER: _number,
    SettingType.FLAG: _flag,
    SettingType.EMAIL: _email,
    SettingType.EMAILS: _emails,
    SettingType.HEADERS: _headers,
}
