"""What can go wrong between admin and executor."""

from typing import ClassVar

from jobwheel.kernel.errors import JobwheelError
from jobwheel.wire.why import Cause


class MalformedMessageError(JobwheelError):
    """A body that is no message of the protocol."""

    code: ClassVar[str] = "malformed_message"

    def __init__(self, what: str, *, field: str | None = None) -> None:
        super().__init__(f"{field}: {what}" if field else what, field=field)


class UnreachableError(JobwheelError):
    """No byte of the request was written: the peer cannot have seen it. `cause` is None where the system says why."""

    code: ClassVar[str] = "unreachable"

    def __init__(self, url: str, reason: Cause | str) -> None:
        super().__init__(f"{url} is unreachable: {reason}")
        self.reason = str(reason)
        self.cause = reason if isinstance(reason, Cause) else None


class UncertainError(JobwheelError):
    """The request was written, at least in part, and no readable answer came: the peer may have acted on it.

    `cause` is None where the system says why.
    """

    code: ClassVar[str] = "uncertain"

    def __init__(self, url: str, reason: Cause | str) -> None:
        super().__init__(f"{url} gave no usable answer: {reason}")
        self.reason = str(reason)
        self.cause = reason if isinstance(reason, Cause) else None
