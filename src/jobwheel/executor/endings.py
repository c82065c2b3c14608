"""What a run ends with when it is ended from outside, in words that an admin and its people read."""

from typing import Final

from jobwheel.executor.invocation import Outcome
from jobwheel.wire.messages import FAILURE, TIMED_OUT

# The reference's words, colon included: admins tell by them what became of a run.
DISCARD_LATER_EFFECT: Final = "block strategy effect\uff1aDiscard Later"
COVER_EARLY_EFFECT: Final = "block strategy effect\uff1aCover Early"

COVERED: Final = Outcome(FAILURE, f"{COVER_EARLY_EFFECT}: a later run of the job ended this one")
COVERED_IN_QUEUE: Final = Outcome(FAILURE, f"{COVER_EARLY_EFFECT}: a later run of the job came before this one began")

JOB_KILLED: Final = Outcome(FAILURE, "killed: an admin ended every run of the job here")
JOB_KILLED_IN_QUEUE: Final = Outcome(FAILURE, "killed before it began: an admin ended every run of the job here")
RUN_KILLED: Final = Outcome(FAILURE, "killed: an admin ended this run")
RUN_KILLED_IN_QUEUE: Final = Outcome(FAILURE, "killed before it began: an admin ended this run")

STOPPED: Final = Outcome(FAILURE, "the executor stopped while this run was under way, and ended it")
STOPPED_IN_QUEUE: Final = Outcome(FAILURE, "the executor stopped before this run began")

NO_THREAD: Final = Outcome(FAILURE, "the run could not begin: the system gave the job no new thread")


def timed_out(timeout_s: int) -> Outcome:
    """The run took longer than the job allows."""
    return Outcome(TIMED_OUT, f"timed out after {timeout_s} s")
