"""When an unconfirmed run is looked at (`behaviour.md`, Unconfirmed runs). Times are milliseconds."""

RESEND_AFTER_MS = (10_000, 30_000, 60_000, 120_000, 180_000, 240_000)
"""An executor of ours is sent the run again so long after the failure."""

RESENDS_END_MS = 300_000
"""After so long without an answer the run is lost."""

FIRST_QUESTION_MS = 60_000
"""Another executor is asked about the job so long after the failure, and then each `QUESTION_EVERY_MS`."""

QUESTION_EVERY_MS = 30_000

UNHEARD_END_MS = 600_000
"""After so long without a readable answer the run is lost."""


def first_check_ms(failed_ms: int, *, ours: bool) -> int:
    """When an unconfirmed run is looked at first: resent to an executor of ours, asked about at another."""
    return failed_ms + (RESEND_AFTER_MS[0] if ours else FIRST_QUESTION_MS)


def next_check_ms(unheard_ms: int, now_ms: int, *, ours: bool) -> int:
    """When it is looked at again after a look now."""
    if not ours:
        return now_ms + QUESTION_EVERY_MS
    later = (unheard_ms + after_ms for after_ms in (*RESEND_AFTER_MS, RESENDS_END_MS))
    return next((check_ms for check_ms in later if check_ms > now_ms), now_ms + RESEND_AFTER_MS[0])
