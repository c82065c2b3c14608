"""The base of every error of ours."""

from typing import ClassVar


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
