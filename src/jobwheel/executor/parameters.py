"""A job's parameter as the type that a handler declares."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import inspect as types

from jobwheel.executor.errors import ParameterError
from jobwheel.wire.codec import malformed

Reader = Callable[[str], Any]
"""Turns a job's parameter into what the handler takes; raises `ParameterError`."""


def reader_of(declared: Any) -> Reader:
    """The reader for a declared type: `str` is the text as it is, all else is read from JSON and validated.

    Pydantic's models are known by their `model_validate_json`; dataclasses, `msgspec.Struct`, TypedDict, and the
    types that JSON has are read by msgspec.

    Raises:
        TypeError: nothing can be read into such a type; says why.
    """
    if declared is str:
        return _as_it_is
    if hasattr(declared, "model_validate_json"):
        return _model_reader(declared)
    unreadable = [getattr(each, "__name__", str(each)) for each in _unreadable(types.type_info(declared), set())]
    if unreadable:
        raise TypeError(f"JSON cannot be read into {', '.join(unreadable)}")
    return _json_reader(msgspec.json.Decoder(declared))


def _as_it_is(text: str) -> str:
    return text


def _json_reader(decoder: "msgspec.json.Decoder[Any]") -> Reader:
    def read(text: str) -> Any:
        try:
            return decoder.decode(_filled(text))
        except msgspec.ValidationError as error:
            raise _refusal(text, malformed(error).message) from error
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ParameterError(f"it must be JSON ({error})") from error

    return read


def _model_reader(model: Any) -> Reader:
    def read(text: str) -> Any:
        try:
            return model.model_validate_json(_filled(text))
        except ValueError as error:
            raise _refusal(text, _model_reasons(error)) from error

    return read


def _filled(text: str) -> str:
    """What stands for the parameter: nothing at all is an object without fields, so that defaults can apply."""
    return text if text.strip() else "{}"


def _refusal(text: str, reason: str) -> ParameterError:
    return ParameterError(reason if text.strip() else f"{reason} (the parameter is empty)")


def _model_reasons(error: ValueError) -> str:
    """The errors of a model's validation, each with its field in front."""
    details = getattr(error, "errors", None)
    if not callable(details):
        return str(error)
    return "; ".join(": ".join(filter(None, (_path(each.get("loc", ())), each.get("msg", "")))) for each in details())


def _path(location: tuple[object, ...]) -> str:
    return ".".join(str(step) for step in location)


def _unreadable(info: object, seen: set[int]) -> Iterator[Any]:
    """The classes within a type that msgspec knows nothing of, and would refuse only when a run comes."""
    if isinstance(info, types.CustomType):
        yield info.cls
    elif isinstance(info, msgspec.Struct) and id(info) not in seen:
        seen.add(id(info))
        for value in msgspec.structs.astuple(info):
            for each in value if isinstance(value, tuple) else (value,):
                yield from _unreadable(each, seen)
