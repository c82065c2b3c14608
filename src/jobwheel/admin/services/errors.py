"""Why a use case was refused, in words for whoever asked."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from jobwheel.admin.domain.ids import JobId, RunId
from jobwheel.admin.domain.listing import listed
from jobwheel.admin.domain.run import Outcome
from jobwheel.kernel.errors import JobwheelError


class NotFoundError(JobwheelError):
    """There is no such thing (or not for this person)."""

    code: ClassVar[str] = "not_found"

    def __init__(self, what: str, name: object) -> None:
        super().__init__(f"there is no {what} {name}")
        self.what = what


class InvalidFieldError(JobwheelError):
    """A field holds something that it cannot hold."""

    code: ClassVar[str] = "invalid"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}", field=field)


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


class NotSignedInError(JobwheelError):
    """Nobody knows who asks.

    `or_else` is what a program may do instead; empty if this is for people alone.
    """

    code: ClassVar[str] = "not_signed_in"

    def __init__(self, or_else: str = "send a valid API token") -> None:
        super().__init__(f"sign in first (POST /api/v1/session){f', or {or_else}' if or_else else ''}")


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


class TooManyGuessesError(JobwheelError):
    """Too many wrong API tokens; `retry_after_s` says when the next one is looked at."""

    code: ClassVar[str] = "too_many_guesses"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"too many wrong API tokens from this address; try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class ForbiddenError(JobwheelError):
    """Who asks is known, and may not do this."""

    code: ClassVar[str] = "forbidden"


class TooManyTokensError(JobwheelError):
    """A group has as many valid tokens as it may have."""

    code: ClassVar[str] = "too_many_tokens"

    def __init__(self, app_name: str, what_to_do: str) -> None:
        super().__init__(f"the group {app_name} {what_to_do}")


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


class AmbiguousGroupError(JobwheelError):
    """Two groups have one app name, as databases of old may hold it: its jobs cannot be told apart by it."""

    code: ClassVar[str] = "ambiguous_group"

    def __init__(self, app_name: str) -> None:
        super().__init__(
            f"app_name: more than one group is called {app_name}; rename one of them first", field="app_name"
        )


class PlanChangedError(JobwheelError):
    """What would be done is not what the plan showed."""

    code: ClassVar[str] = "plan_changed"

    def __init__(self) -> None:
        super().__init__(
            "fingerprint: the document or the stored jobs have changed since the plan was made; plan again",
            field="fingerprint",
        )


class KeylessJobsError(JobwheelError):
    """Jobs without a key cannot be in a file: nothing would tell which job is meant."""

    code: ClassVar[str] = "keyless_jobs"

    def __init__(self, names: Mapping[JobId, str]) -> None:
        shown = listed([f"{job_id} ({name})" for job_id, name in sorted(names.items())])
        super().__init__(
            f"{len(names)} {'job has' if len(names) == 1 else 'jobs have'} no key: {shown}; give them one each "
            "(`jobwheel jobs export --assign-keys` gives them job-ID)",
            field="key",
        )


class OpenRunsError(JobwheelError):
    """Runs that have not ended are not repeated: they would run twice at once."""

    code: ClassVar[str] = "open_runs"

    def __init__(self, run_ids: Sequence[RunId]) -> None:
        super().__init__(
            f"run_ids: still open: {listed(run_ids)}; wait until they have ended, or leave them out", field="run_ids"
        )


class HandBackRefusedError(JobwheelError):
    """The installation cannot be handed back to an admin of XXL-JOB."""

    code: ClassVar[str] = "hand_back_refused"


class TooManyWaitingError(JobwheelError):
    """As many requests wait for the end of runs as may."""

    code: ClassVar[str] = "too_many_waiting"

    def __init__(self, most: int) -> None:
        super().__init__(f"{most} requests wait for runs already; ask without wait_s, or later", field="wait_s")


class RunEndedError(JobwheelError):
    """A run that has ended cannot be killed, nor one that another make of admin runs."""

    code: ClassVar[str] = "run_ended"

    def __init__(self, run_id: RunId, outcome: Outcome | None) -> None:
        if outcome is None:
            super().__init__(f"run {run_id} is another admin's, which alone can kill it")
        else:
            super().__init__(f"run {run_id} has ended already ({outcome}); a run that is over cannot be killed")


class KillsWholeJobError(JobwheelError):
    """An executor that cannot end one run alone would end others as well."""

    code: ClassVar[str] = "kills_whole_job"

    def __init__(self, job_id: JobId, address: str) -> None:
        super().__init__(
            f"the executor {address} cannot end one run alone: it would end every run of job {job_id} that is there, "
            "and empty the job's queue; if that is meant, ask again with by_job=true",
            field="by_job",
        )
