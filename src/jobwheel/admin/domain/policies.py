"""What a job may be told to do. The names are the reference's, since users type them and databases hold them."""

from enum import StrEnum


class MisfireStrategy(StrEnum):
    """What happens to planned times that were missed by more than `MISFIRE_AFTER_MS`."""

    DO_NOTHING = "DO_NOTHING"
    FIRE_ONCE_NOW = "FIRE_ONCE_NOW"
    FIRE_ALL = "FIRE_ALL"


class RouteStrategy(StrEnum):
    """Which of a group's addresses gets a run."""

    FIRST = "FIRST"
    LAST = "LAST"
    ROUND = "ROUND"
    RANDOM = "RANDOM"
    CONSISTENT_HASH = "CONSISTENT_HASH"
    LEAST_FREQUENTLY_USED = "LEAST_FREQUENTLY_USED"
    LEAST_RECENTLY_USED = "LEAST_RECENTLY_USED"
    FAILOVER = "FAILOVER"
    BUSYOVER = "BUSYOVER"
    SHARDING_BROADCAST = "SHARDING_BROADCAST"


class RunLimitOverflow(StrEnum):
    """What happens to a run of a job that has as many under way in the cluster as it may have."""

    WAIT = "WAIT"
    DISCARD = "DISCARD"


class RetryBackoff(StrEnum):
    """How long the retries of a run wait: the job's interval each, or twice as long as the one before."""

    FIXED = "FIXED"
    DOUBLING = "DOUBLING"


class UncertainSend(StrEnum):
    """What happens to a run that may not have arrived at an executor that could run it twice."""

    ASK = "ASK"
    SEND_AGAIN = "SEND_AGAIN"


class BlockStrategy(StrEnum):
    """What an executor does with a run of a job that is running there already."""

    SERIAL_EXECUTION = "SERIAL_EXECUTION"
    DISCARD_LATER = "DISCARD_LATER"
    COVER_EARLY = "COVER_EARLY"


class GlueType(StrEnum):
    """What a job runs: a handler of the executor, or a script."""

    BEAN = "BEAN"
    GLUE_SHELL = "GLUE_SHELL"
    GLUE_PYTHON = "GLUE_PYTHON"
    GLUE_PYTHON2 = "GLUE_PYTHON2"
    GLUE_NODEJS = "GLUE_NODEJS"
    GLUE_POWERSHELL = "GLUE_POWERSHELL"
    GLUE_PHP = "GLUE_PHP"
    GLUE_GROOVY = "GLUE_GROOVY"


MISFIRE_AFTER_MS = 5_000
"""A planned time further in the past than this, when a claim reads it, is a misfire (behaviour.md, Misfire)."""

AWAITING_SETTLEMENT_MS = 253_402_300_799_000
"""The next time of a FIX_DELAY job while a run of it is open: no claim takes it (behaviour.md, Schedules)."""
