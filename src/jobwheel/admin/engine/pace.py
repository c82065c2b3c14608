"""How much a claim takes on at once: less while sends are behind and planning is not, so that sends have their turn."""

from dataclasses import replace

from jobwheel.admin.engine.claim import ClaimLimits

TIME_TO_YIELD_MS = 1_000
"""While the run that is due first was planned so long before its time, claims can wait for sends."""

_LEAST_AHEAD_S = 2.0
_CLAIMED_AHEAD = 0.6
_PIECES = 4


def claimed_ahead_s(look_ahead_s: float) -> float:
    """How long before its next time a job is claimed: most of the look-ahead, and two passes at least.

    So a job of every second, planned for the whole look-ahead each time, costs a claim each few seconds, not each; and
    passes that fail for a while, because somebody else holds the lock, make nothing late.
    """
    return min(look_ahead_s, max(_LEAST_AHEAD_S, look_ahead_s * _CLAIMED_AHEAD))


def yielding(limits: ClaimLimits) -> ClaimLimits:
    """The limits of a claim while runs that are due wait to be sent, or what came of them to be written.

    All three are written one after the other, and a take-off waits for the claim before it: a long one holds up the
    sends, and while these take their time fewer are let on their way. So claims come in pieces, and leave for later
    what has time. Only while there is time: see `TIME_TO_YIELD_MS`.
    """
    return replace(
        limits,
        most_runs=max(1, limits.most_runs // _PIECES),
        claimed_ahead_s=min(limits.claimed_ahead_s, _LEAST_AHEAD_S),
    )
