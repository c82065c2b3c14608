"""When runs are looked at that have no answer, or no result (`behaviour.md`, Unconfirmed runs, Lost, Kill).

Times are milliseconds.
"""

from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.policies import UncertainSend

RESEND_AFTER_MS = (10_000, 30_000, 60_000, 120_000, 180_000, 240_000)
"""A run is sent again so long after the failure: to an executor of ours, or to any if its job says so."""

RESENDS_END_MS = 300_000
"""After so long without an answer the run is lost."""

FIRST_QUESTION_MS = 60_000
"""Another executor is asked about the job so long after the failure, and then each `QUESTION_EVERY_MS`."""

QUESTION_EVERY_MS = 30_000

UNHEARD_END_MS = 600_000
"""After so long without a readable answer the run is lost."""

IDLE_ANSWERS = 3
"""A run is lost at another executor that called its job idle so many times running."""

SILENT_MS = 120_000
"""An accepted run is asked about after so long, and lost if nothing beat where it is for so long."""

ASKED_EVERY_MS = 60_000
"""An accepted run is asked about again after so long."""

KILL_AGAIN_MS = 5_000
"""An executor that did not answer is told again after so long to end a run."""

KILL_END_MS = 60_000
"""A run that was to be killed is killed after so long without a result."""


def is_sent_again(instance_id: str | None, job: DispatchJob | None) -> bool:
    """Whether an unconfirmed run is sent again: executors of ours know one that they have; for others the job says."""
    return instance_id is not None or (job is not None and job.uncertain_send == UncertainSend.SEND_AGAIN)


def first_check_ms(failed_ms: int, *, resent: bool) -> int:
    """When an unconfirmed run is looked at first: sent again, or asked about."""
    return failed_ms + (RESEND_AFTER_MS[0] if resent else FIRST_QUESTION_MS)


def first_look_ms(accepted_ms: int) -> int:
    """When an accepted run is looked at first, if there is no result."""
    return accepted_ms + SILENT_MS


def is_asked_about(unheard_ms: int, idle_answers: int, now_ms: int) -> bool:
    """Whether another executor is asked about an accepted run: after long silence, and then until it says busy."""
    return idle_answers > 0 or now_ms - unheard_ms >= UNHEARD_END_MS


def next_look_ms(unheard_ms: int, idle_answers: int, now_ms: int, *, ours: bool) -> int:
    """When an accepted run is looked at again after a look now."""
    if ours:
        return now_ms + ASKED_EVERY_MS
    asked = is_asked_about(unheard_ms, idle_answers, now_ms)
    return now_ms + QUESTION_EVERY_MS if asked else unheard_ms + UNHEARD_END_MS


def next_kill_ms(kill_ms: int, now_ms: int) -> int:
    """When an executor is told again to end a run, or the run is killed without its result."""
    end_ms = kill_ms + KILL_END_MS
    return min(now_ms + KILL_AGAIN_MS, end_ms) if now_ms < end_ms else now_ms + KILL_AGAIN_MS


def next_check_ms(unheard_ms: int, now_ms: int, *, resent: bool) -> int:
    """When it is looked at again after a look now."""
    if not resent:
        return now_ms + QUESTION_EVERY_MS
    later = (unheard_ms + after_ms for after_ms in (*RESEND_AFTER_MS, RESENDS_END_MS))
    return next((check_ms for check_ms in later if check_ms > now_ms), now_ms + RESEND_AFTER_MS[0])
