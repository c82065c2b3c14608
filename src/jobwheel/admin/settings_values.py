"""How a setting's text (or TOML value) becomes its value."""

import ipaddress
from collections.abc import Callable
from dataclasses import Field
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from jobwheel.kernel.secret import Secret
from jobwheel.schedule import ScheduleError, load_zone
from jobwheel.wire.client_request import parse_target
from jobwheel.wire.errors import UnreachableError

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


class SettingValueError(ValueError):
    """Says what is wrong with a value; never repeats a secret."""


def read_value(setting: Field[Any], value: object) -> object:
    """The value of a setting from a text of the environment, a TOML value or an argument.

    Raises:
        SettingValueError: it is of the wrong kind or out of range.
    """
    kind = setting.type
    if get_origin(kind) is Literal:
        return _choice(get_args(kind), value)
    if kind in _READERS:
        return _in_range(setting, _READERS[kind](value))
    if kind == Secret | None:
        return value if isinstance(value, Secret) else Secret(_text(value, secret=True))
    if kind in (Path, Path | None):
        return _path(value, must_exist=setting.metadata.get("kind") == "file")
    text = _text(value)
    read = {"zone": _zone, "url": _url, "networks": _networks}.get(setting.metadata.get("kind", ""))
    return text if read is None else read(text)


def _text(value: object, *, secret: bool = False) -> str:
    if not isinstance(value, str):
        raise SettingValueError("is not a text" if secret else f"{value!r} is not a text")
    if "\x00" in value or not value.isprintable():
        raise SettingValueError("holds a character that cannot be printed")
    return value


def _choice(choices: tuple[str, ...], value: object) -> str:
    for choice in choices:
        if isinstance(value, str) and value.lower() == choice.lower():
            return choice
    raise SettingValueError(f"{value!r} is not one of {', '.join(choices)}")


def _flag(value: object) -> bool:
    text = str(value).lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise SettingValueError(f"{value!r} is neither true nor false")


def _whole_number(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and len(value) < 20 and value.isascii() and value.removeprefix("-").isdigit():
        return int(value)
    raise SettingValueError(f"{value!r} is not a whole number")


def _number(value: object) -> float:
    try:
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise SettingValueError(f"{value!r} is not a number")


def _in_range(setting: Field[Any], number: float) -> float:
    if "least" not in setting.metadata:
        return number
    least, most = setting.metadata["least"], setting.metadata["most"]
    # Written so that "not a number" is out of range too.
    if not least <= number <= most:
        raise SettingValueError(f"{number} is not in {least}-{most}")
    return number


def _path(value: object, *, must_exist: bool) -> Path:
    text = str(value) if isinstance(value, Path) else _text(value)
    if not text:
        raise SettingValueError("is empty; a path is wanted")
    path = Path(text).expanduser()
    if must_exist and not path.is_file():
        raise SettingValueError(f"there is no file {text!r}")
    return path


def _zone(text: str) -> str:
    try:
        load_zone(text)
    except ScheduleError as error:
        raise SettingValueError(error.problem) from error
    return text


def _url(text: str) -> str:
    try:
        parse_target(text)
    except UnreachableError as error:
        raise SettingValueError(
            f"{text!r} is not an address such as https://jobs.example.com: {error.reason}"
        ) from error
    return text.rstrip("/")


def _networks(text: str) -> str:
    """Addresses and networks with commas between them, as each is written in full."""
    read = []
    for each in text.split(","):
        try:
            network = ipaddress.ip_network(each.strip())
        except ValueError as error:
            raise SettingValueError(
                f"{each.strip()!r} is neither an address such as 10.0.0.7 nor a network such as 10.0.0.0/24: {error}"
            ) from error
        read.append(str(network if network.num_addresses > 1 else network.network_address))
    return ",".join(read)


_READERS: Final[dict[object, Callable[[object], float]]] = {bool: _flag, int: _whole_number, float: _number}
