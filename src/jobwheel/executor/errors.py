"""What can go wrong in an executor, as its users see it."""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from jobwheel.kernel.errors import JobwheelError


class SettingError(JobwheelError):
    """A setting with a value that cannot work."""

    code: ClassVar[str] = "bad_setting"

    def __init__(self, setting: str, value: object, valid: str) -> None:
        super().__init__(f"setting {setting} is {value!r}, but must be {valid}", field=setting)


class UnknownSettingError(SettingError):
    """A name that is no setting, among the arguments of an executor or in its file."""

    code: ClassVar[str] = "unknown_setting"

    def __init__(self, setting: str, where: str, valid: Iterable[str]) -> None:
        # Without the value: a token under a name that is misspelt is a secret all the same.
        JobwheelError.__init__(
            self, f"{where}: {setting!r} is no setting; valid ones are {', '.join(valid)}", field=setting
        )


class HandlerError(JobwheelError):
    """A job handler that cannot be registered."""

    code: ClassVar[str] = "bad_handler"

    def __init__(self, name: object, what: str) -> None:
        super().__init__(f"job handler {name!r}: {what}", field="name")


class ParameterError(JobwheelError):
    """A job's parameter that is not what its handler declares."""

    code: ClassVar[str] = "bad_parameter"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the job's parameter does not fit its handler: {reason}", field="parameter")


class BindError(JobwheelError):
    """The executor's server cannot listen."""

    code: ClassVar[str] = "cannot_listen"

    def __init__(self, host: str, port: str, reason: str, *, field: str) -> None:
        advice = "choose another `port`, or 0 for the next free one" if field == "port" else f"check `{field}`"
        super().__init__(f"cannot listen on {host} port {port}: {reason}; {advice}", field=field)


class StorageError(JobwheelError):
    """The executor's folder cannot be used."""

    code: ClassVar[str] = "log_path_unusable"

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"cannot write to {path}: {reason}; choose another `log_path`", field="log_path")


class NotInJobError(JobwheelError):
    """`JobContext.current()` outside a run."""

    code: ClassVar[str] = "not_in_job"

    def __init__(self) -> None:
        super().__init__(
            "no run is under way here: a thread sees its starter's run only through `bind` of the run's JobContext"
        )


class NotStartedError(JobwheelError):
    """Something that only a started executor has."""

    code: ClassVar[str] = "not_started"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is known once the executor has started")


class StartedInChildError(JobwheelError):
    """An executor that is started by a child process of an executor, which imports the program for its handlers."""

    code: ClassVar[str] = "started_in_child"

    def __init__(self) -> None:
        super().__init__(
            "the program starts its executor when it is imported, but its process handlers have to import it: "
            'put the start behind `if __name__ == "__main__":`'
        )


class AdminRefusedError(JobwheelError):
    """An admin answered, but not with success.

    `readable` says whether the answer was one of the protocol: if not, the address is likely not an admin's.
    """

    code: ClassVar[str] = "admin_refused"

    def __init__(self, url: str, status: int, reason: str, *, readable: bool) -> None:
        super().__init__(f"{url} answered {status}: {reason}")
        self.url = url
        self.status = status
        self.reason = reason
        self.readable = readable


def listed(names: Iterable[str]) -> str:
    """Names for a message: sorted, or the word for none."""
    return ", ".join(sorted(names)) or "none"
