"""What can go wrong at the command line, in one line each."""

from collections.abc import Iterable
from typing import ClassVar

from jobwheel.kernel.errors import JobwheelError


class TargetError(JobwheelError):
    """`module:executor` names no executor."""

    code: ClassVar[str] = "bad_target"

    def __init__(self, target: str, problem: str) -> None:
        super().__init__(f"{target}: {problem}", field="target")


class NoDatabaseError(JobwheelError):
    """A command that works on the database was called before there is one."""

    code: ClassVar[str] = "no_database"

    def __init__(self, where: str) -> None:
        super().__init__(
            f"there is no database at {where}; `jobwheel admin` and `jobwheel db upgrade` make it "
            "(JOBWHEEL_DATA_DIR or --data-dir says where)"
        )


class NoTokenError(JobwheelError):
    """The installation has no token yet."""

    code: ClassVar[str] = "no_token"

    def __init__(self, where: str) -> None:
        super().__init__(
            f"the database {where} holds no token; the first start of `jobwheel admin` makes one unless "
            "JOBWHEEL_ACCESS_TOKEN is set"
        )


class AdminUnreachableError(JobwheelError):
    """The admin does not answer."""

    code: ClassVar[str] = "admin_unreachable"

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"cannot reach the admin at {url}: {reason}; start it (`jobwheel admin`), or name another one with --url "
            "or JOBWHEEL_URL"
        )


class AdminUrlError(JobwheelError):
    """The admin's address is not one."""

    code: ClassVar[str] = "bad_url"

    def __init__(self, url: str) -> None:
        super().__init__(f"{url!r} is no address of an admin; a valid one is http://127.0.0.1:8080", field="url")


class CaFileError(JobwheelError):
    """The file that JOBWHEEL_CA_FILE names holds no certificates."""

    code: ClassVar[str] = "bad_ca_file"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"JOBWHEEL_CA_FILE: {path!r} holds no certificates in PEM: {problem}", field="ca_file")


class NotSignedInError(JobwheelError):
    """There is no session, or it is over."""

    code: ClassVar[str] = "not_signed_in"

    def __init__(self, url: str) -> None:
        super().__init__(f"not signed in at {url}: run `jobwheel login --url {url}`")


class ApiTokenRefusedError(JobwheelError):
    """The token in JOBWHEEL_TOKEN is none of this admin, or is over."""

    code: ClassVar[str] = "api_token_refused"

    def __init__(self, url: str) -> None:
        super().__init__(
            f"{url} does not know the token in JOBWHEEL_TOKEN: it was revoked, has expired, or is another's"
        )


class RefusedError(JobwheelError):
    """The admin refused; the message is its own. `status` is the HTTP status."""

    def __init__(self, status: int, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message, field=field)
        self.status = status
        self.reason = code


class UnreadableReplyError(JobwheelError):
    """Something answered that is no admin."""

    code: ClassVar[str] = "unreadable_reply"

    def __init__(self, url: str, status: int) -> None:
        super().__init__(f"{url} answered {status} with something that no admin says; is a proxy in between?")


class SessionFileError(JobwheelError):
    """The file that keeps the session cannot be used."""

    code: ClassVar[str] = "session_file"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"the session file {path} {problem}; remove it and run `jobwheel login`")


class JobFileError(JobwheelError):
    """A file of jobs that cannot be applied; names the line."""

    code: ClassVar[str] = "bad_job_file"

    def __init__(self, path: object, line: int, problem: str) -> None:
        super().__init__(f"{path}:{line}: {problem}", field="file")


class JobNameError(JobwheelError):
    """What was given names no job, or more than one."""

    code: ClassVar[str] = "bad_job_name"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name!r} {problem}", field="job")


class GroupNameError(JobwheelError):
    """What was given names no group."""

    code: ClassVar[str] = "bad_group_name"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name!r} is neither a group's id nor its app name; see them with jobwheel groups list", field="group"
        )


class ChannelNameError(JobwheelError):
    """What was given names no alarm channel."""

    code: ClassVar[str] = "bad_channel_name"

    def __init__(self, name: str, names: Iterable[str]) -> None:
        there = ", ".join(sorted(names)) or "none: make one with jobwheel alarms create"
        super().__init__(f"{name!r} is neither an alarm channel's id nor its name; there are {there}", field="channel")
