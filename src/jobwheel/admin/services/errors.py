"""Why a use case was refused, in words for whoever asked."""

from collections.abc import Iterable
from typing import ClassVar

from jobwheel.kernel.errors import JobwheelError


class NotFoundError(JobwheelError):
    """There is no such thing (or not for this person)."""

    code: ClassVar[str] = "not_found"

    def __init__(self, what: str, name: object) -> None:
        super().__init__(f"there is no {what} {name}")


class InvalidFieldError(JobwheelError):
    """A field holds something that it cannot hold."""

    code: ClassVar[str] = "invalid"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}", field=field)


class NotSupportedYetError(JobwheelError):
    """A setting that this version cannot honour: refused, since storing it without effect would deceive."""

    code: ClassVar[str] = "not_supported_yet"

    def __init__(self, field: str, value: object, supported: Iterable[str]) -> None:
        instead = " or ".join(supported)
        super().__init__(
            f"{field}: {value} is not supported yet; {f'use {instead}' if instead else 'leave it out'}", field=field
        )


class TakenError(JobwheelError):
    """A name that must be unique is in use."""

    code: ClassVar[str] = "taken"

    def __init__(self, field: str, value: str, holder: str) -> None:
        super().__init__(f"{field}: {value!r} is taken by {holder}", field=field)


class VersionConflictError(JobwheelError):
    """Someone else changed the thing since it was read."""

    code: ClassVar[str] = "version_conflict"

    def __init__(self, what: str, given: int, stored: int) -> None:
        super().__init__(
            f"the {what} was changed meanwhile: version {given} was given, {stored} is stored; read it again",
            field="version",
        )


class NeverFiresError(JobwheelError):
    """A job that would never run cannot be running."""

    code: ClassVar[str] = "never_fires"

    def __init__(self, schedule: str, field: str, what_to_do: str) -> None:
        super().__init__(
            f"the schedule ({schedule}) has no next time, so the job cannot run; {what_to_do}", field=field
        )


class GroupInUseError(JobwheelError):
    """A group that still has jobs cannot be deleted."""

    code: ClassVar[str] = "group_in_use"

    def __init__(self, app_name: str, jobs: int) -> None:
        super().__init__(
            f"the group {app_name} still has {jobs} {'job' if jobs == 1 else 'jobs'}; delete or move them first"
        )


class SignInRefusedError(JobwheelError):
    """Wrong name or wrong password: which one is not told."""

    code: ClassVar[str] = "sign_in_refused"

    def __init__(self) -> None:
        super().__init__("the user name or the password is wrong")


class SignInThrottledError(JobwheelError):
    """Too many failed sign-ins; `retry_after_s` says when the next one is looked at."""

    code: ClassVar[str] = "sign_in_throttled"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"too many failed sign-ins; try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class WrongPasswordError(JobwheelError):
    """The old password, asked for before a change, is wrong."""

    code: ClassVar[str] = "wrong_password"

    def __init__(self) -> None:
        super().__init__("old_password: is wrong", field="old_password")


class ExecutorUnreachableError(JobwheelError):
    """The executor that has the log cannot be asked."""

    code: ClassVar[str] = "executor_unreachable"

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"the log is on the executor {address}, which cannot be asked: {reason}")
