"""How often the acceptance tests inject each fault: a few times in every test run, many times for the proof."""

import os

ROUNDS = int(os.environ.get("JOBWHEEL_CHAOS_ROUNDS", "0"))
"""Rounds of each fault in the long form; 0: the short form."""


def rounds(short: int) -> int:
    """How many rounds a fault has: `short` of them unless the long form is asked for."""
    return ROUNDS or short
