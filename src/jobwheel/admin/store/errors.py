"""What can be wrong with the database, in words for the operator."""

from typing import ClassVar

from jobwheel.kernel.errors import JobwheelError


class DatabaseUrlError(JobwheelError):
    """The setting names no database that Jobwheel can use."""

    code: ClassVar[str] = "database_url"

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"JOBWHEEL_DATABASE_URL {url!r}: {reason}; valid ones are sqlite:////var/lib/jobwheel/jobwheel.db and "
            "postgresql://user:password@host/name",
            field="JOBWHEEL_DATABASE_URL",
        )


class DatabaseUnusableError(JobwheelError):
    """The database file cannot be opened or written, or the server not be used; says why."""

    code: ClassVar[str] = "database_unusable"

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"the database {where} cannot be used: {reason}")


class DatabaseInUseError(JobwheelError):
    """Another admin process has the SQLite file: `holder`, if it is known."""

    code: ClassVar[str] = "database_in_use"

    def __init__(self, where: str, holder: int | None) -> None:
        self.holder = holder
        process = "" if holder is None else f" (process {holder})"
        super().__init__(
            f"the database {where} is in use by another admin{process}; an SQLite database serves one admin at a time: "
            "stop the other one, or give this one another JOBWHEEL_DATA_DIR"
        )


class SchemaVersionError(JobwheelError):
    """The schema is older or newer than this program knows, or is somebody else's."""

    code: ClassVar[str] = "schema_version"

    def __init__(self, where: str, found: str, wanted: str, what_to_do: str) -> None:
        super().__init__(f"the database {where} has schema {found}, this program needs {wanted}: {what_to_do}")


class DatabaseAwayError(JobwheelError):
    """The server cannot be reached, or went away."""

    code: ClassVar[str] = "database_away"

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"the database {where} is away: {reason}")


class DatabaseSilentError(JobwheelError):
    """The server has the connection open and says nothing."""

    code: ClassVar[str] = "database_silent"

    def __init__(self, where: str, waited_s: float) -> None:
        super().__init__(
            f"the database {where} has not answered within {waited_s:g} s: its connections are given up, and new ones "
            "are made (JOBWHEEL_DATABASE_TIMEOUT_S says how long to wait)"
        )


class UnknownCommitError(JobwheelError):
    """The connection was lost during a commit: what was written may or may not be there."""

    code: ClassVar[str] = "commit_unknown"

    def __init__(self, where: str) -> None:
        super().__init__(
            f"the connection to the database {where} was lost while a transaction was committed: look whether its "
            "changes are there before you make them again"
        )


class ScheduleLockedError(JobwheelError):
    """Another admin holds the schedule's lock row."""

    code: ClassVar[str] = "schedule_locked"

    def __init__(self) -> None:
        super().__init__("another admin or session holds the row schedule_lock of xxl_job_lock: it is tried again")
