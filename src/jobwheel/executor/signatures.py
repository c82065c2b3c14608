"""What the parameters of a handler ask for."""

import functools
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jobwheel.executor.context import JobContext
from jobwheel.executor.errors import HandlerError
from jobwheel.executor.parameters import Reader, reader_of

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_EMPTY = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Signature:
    """What a handler is called with: the context, the job's parameter read by `read`, both or nothing."""

    takes_context: bool = False
    read: Reader | None = None


def signature_of(name: str, function: Callable[..., Any]) -> Signature:
    """How the function of the handler `name` is to be called.

    Raises:
        HandlerError: it has parameters that nobody gives it, or a type that no parameter can be read into.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        # Some built-in callables have no signature; they are tried with the context.
        return Signature(takes_context=True)
    needed = [item for item in parameters if item.kind in _POSITIONAL and item.default is _EMPTY]
    keywords = [item.name for item in parameters if item.kind is item.KEYWORD_ONLY and item.default is _EMPTY]
    if len(needed) > 2 or keywords:
        more = ", ".join([item.name for item in needed[2:]] + keywords)
        raise HandlerError(name, f"takes the context and the job's parameter, but nobody gives it {more}")
    # Parameters with a default keep it: a handler that never meant to take the context must not get it in their place.
    if not needed:
        return Signature(takes_context=any(item.kind is item.VAR_POSITIONAL for item in parameters))
    first = _is_context(name, function, needed[0])
    if len(needed) == 2 and not first:
        raise HandlerError(name, f"the first of its two parameters, {needed[0].name}, must be the JobContext")
    rest = needed[1:] if first else needed
    return Signature(first, _reader(name, function, rest[0]) if rest else None)


def _is_context(name: str, function: Callable[..., Any], parameter: inspect.Parameter) -> bool:
    declared = parameter.annotation
    if isinstance(declared, str) and declared.rpartition(".")[2] == JobContext.__name__:
        # Its import may be for type checkers alone.
        return True
    declared = _resolved(name, function, parameter)
    # By identity: what stands in an annotation need not be hashable.
    return any(declared is each for each in (_EMPTY, Any, object, JobContext)) or JobContext in typing.get_args(
        declared
    )


def _reader(name: str, function: Callable[..., Any], parameter: inspect.Parameter) -> Reader:
    declared = _resolved(name, function, parameter)
    if declared is _EMPTY:
        raise HandlerError(name, f"its second parameter, {parameter.name}, needs a type; `str` gets the text as it is")
    try:
        return reader_of(declared)
    except (TypeError, NameError, AttributeError) as error:
        raise HandlerError(name, f"the type of {parameter.name} does not work: {error}") from error


def _resolved(name: str, function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The annotation, or what its text stands for."""
    declared = parameter.annotation
    if not isinstance(declared, str):
        return declared
    holder = types.SimpleNamespace(__annotations__={"it": declared})
    try:
        return typing.get_type_hints(holder, _names_of(function), {}, include_extras=True)["it"]
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        where = "in the module of the handler, and not for type checkers alone"
        raise HandlerError(name, f"the type of {parameter.name}, {declared}, must be known {where}: {error}") from error


def _names_of(function: Any) -> dict[str, Any]:
    """The globals that the annotations of a function are written against."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not hasattr(function, "__globals__") and not inspect.ismethod(function):
        function = type(function).__call__
    names: dict[str, Any] = getattr(inspect.unwrap(function), "__globals__", {})
    return names
