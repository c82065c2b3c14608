"""Cron expressions in words."""

from typing import assert_never

from jobwheel.schedule.base import Language
from jobwheel.schedule.cron_expression import CronExpression
from jobwheel.schedule.words_en import describe_en
from jobwheel.schedule.words_zh import describe_zh_cn, describe_zh_tw


def describe_cron(expression: CronExpression, language: Language) -> str:
    """What the fields mean; the rule for clock changes is not part of it.

    Expressions that match different wall times have different descriptions.
    """
    match language:
        case Language.EN:
            return describe_en(expression)
        case Language.ZH_CN:
            return describe_zh_cn(expression)
        case Language.ZH_TW:
            return describe_zh_tw(expression)
        case _:
            assert_never(language)
