"""Bytes to messages and back."""

import re
from typing import Any, TypeVar

import msgspec

from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.mend import mend_json, without_surrogates
from jobwheel.wire.messages import Envelope, Reason

Message = TypeVar("Message")

_AT_PATH = re.compile(r"(?s)^(?P<what>.*?) - at `(?P<path>.*)`$")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]+)`")
_NULL = msgspec.Raw(b"null")


def encode(message: object) -> bytes:
    """A message as JSON."""
    return msgspec.json.encode(message)


def decode(body: bytes, message_type: type[Message]) -> Message:
    """JSON as a message. An absent field and `null` are the same; text that was cut inside a character is mended.

    Raises:
        MalformedMessageError: not JSON, a missing required field, a wrong type; names the field.
    """
    try:
        return msgspec.json.decode(body, type=message_type)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Mended even if a null is what it stumbled over first: badly cut text may stand behind it.
        return _decode_without_nulls(mend_json(body), message_type)
    except RecursionError as error:
        raise MalformedMessageError("the body is nested too deeply") from error


def _decode_without_nulls(body: bytes, message_type: type[Message]) -> Message:
    try:
        return msgspec.json.decode(_without_nulls(body), type=message_type)
    except msgspec.ValidationError as error:
        raise malformed(error) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedMessageError(f"the body is not JSON ({error})") from error
    except RecursionError as error:
        raise MalformedMessageError("the body is nested too deeply") from error


def _without_nulls(body: bytes) -> bytes:
    """The body without its null fields: Java writes absent numbers so."""
    if not body.lstrip().startswith(b"{"):
        return body
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    return msgspec.json.encode({name: value for name, value in fields.items() if bytes(value) != b"null"})


def malformed(error: msgspec.ValidationError) -> MalformedMessageError:
    """A validation error of the codec in the words of the protocol: field first, then what is wrong with it."""
    text = str(error)
    at_path = _AT_PATH.match(text)
    path = at_path["path"].removeprefix("$").lstrip(".") if at_path else ""
    what = at_path["what"] if at_path else text
    missing = _MISSING.match(what)
    if missing:
        path = f"{path}.{missing['name']}" if path else missing["name"]
        what = "is missing"
    what = what.replace("`", "")
    return MalformedMessageError(what[:1].lower() + what[1:], field=path or None)


def encode_envelope(
    code: int,
    msg: str | None = None,
    value: object = None,
    *,
    instance: str | None = None,
    reason: Reason | None = None,
) -> bytes:
    """A reply. The value goes into both `content` and `data`, since readers of either age exist."""
    raw = _NULL if value is None else msgspec.Raw(msgspec.json.encode(value))
    fields: dict[str, Any] = {"code": code, "msg": msg and without_surrogates(msg), "content": raw, "data": raw}
    if instance is not None:
        fields["instance"] = instance
    if reason is not None:
        fields["reason"] = reason
    return msgspec.json.encode(fields)


def decode_envelope(body: bytes) -> Envelope:
    """A reply.

    Raises:
        MalformedMessageError: it is no envelope.
    """
    return decode(body, Envelope)


def envelope_value(envelope: Envelope, value_type: type[Message]) -> Message:
    """What the reply carries, from `data` or `content`, whichever is there.

    Raises:
        MalformedMessageError: neither is there, or it is of another shape.
    """
    for raw in (envelope.data, envelope.content):
        value = bytes(raw)
        if value not in {b"", b"null"}:
            return decode(value, value_type)
    raise MalformedMessageError("is missing", field="data")
