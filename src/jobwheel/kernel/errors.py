"""The base of every error of ours."""

from typing import Any, ClassVar


class JobwheelError(Exception):
    """An error that is meant for a person.

    Each subclass has a stable `code` (part of the public API) and builds its message from its own arguments: what
    happened, where, what to do. `field` names the input that is at fault, if one is.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is made again from its message, which is not what subclasses are made from.
        return _made_again, (type(self), self.args), self.__dict__


def _made_again(kind: type[JobwheelError], args: tuple[object, ...]) -> JobwheelError:
    return kind.__new__(kind, *args)
