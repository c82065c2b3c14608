"""Cron expressions in words."""

from jobwheel.schedule.base import Language
from jobwheel.schedule.cron_expression import CronExpression


def describe_cron(expression: CronExpression, language: Language) -> str:
    """The expression in words."""
    lead = "at the instants of" if language is Language.EN else "cron"
    return f"{lead} {expression}"
