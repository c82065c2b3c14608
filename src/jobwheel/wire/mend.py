"""Text that is nearly JSON, or nearly text: what peers send when they cut a message in the middle of a character.

A result must not be lost, and its sender not send it for ever, because of half an emoji in its message.
"""

import re

_STRING = re.compile(rb'(?s)"(?:[^"\\]++|\\.)*+"?')
_CONTROL = re.compile(rb"[\x00-\x1f]")
_ESCAPE = re.compile(
    rb"(?s)\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONE_ESCAPE_BYTES = 6


def mend_json(body: bytes) -> bytes:
    """The same JSON with valid strings.

    Bytes that are not UTF-8 and halves of a surrogate pair become U+FFFD; control characters that stand as
    themselves in a string are escaped.
    """
    return _STRING.sub(_mend_string, body.decode(errors="replace").encode())


def without_surrogates(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which no UTF-8 can carry."""
    return _SURROGATE.sub("\ufffd", text)


def _mend_string(match: re.Match[bytes]) -> bytes:
    escaped = _CONTROL.sub(lambda control: b"\\u%04x" % control[0][0], match[0])
    return _ESCAPE.sub(_mend_escape, escaped)


def _mend_escape(match: re.Match[bytes]) -> bytes:
    lone = len(match[0]) == _LONE_ESCAPE_BYTES
    return b"\\ufffd" if lone else match[0]
