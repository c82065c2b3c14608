"""What a run's message says of what came of it, in each language. `{}` stands for what it is about, in this order."""
# ruff: noqa: RUF001 - Chinese has its own punctuation marks

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jobwheel.schedule import Language

FOLLOWED_BY: Final = "\n\u2192 "
"""Stands in a run's message between what its executor said and what came of it; never in the latter."""


@dataclass(frozen=True, slots=True)
class FollowUpWords:
    """One language's sentences."""

    retried_now: str
    retried_later: str
    children: str
    comma: str
    child: str
    child_gone: str
    child_refused: str
    late_result: str


WORDS: Final[Mapping[Language, FollowUpWords]] = {
    Language.EN: FollowUpWords(
        retried_now="tried again at once: run {}",
        retried_later="tried again after {} s: run {}",
        children="children: {}",
        comma=", ",
        child="job {} (run {})",
        child_gone="job {} does not exist any more",
        child_refused="job {} is not run: this run comes of one of its own, or of too many others",
        late_result="its result came after all, when it had been taken for lost, and replaces that",
    ),
    Language.ZH_CN: FollowUpWords(
        retried_now="立即重试：实例 {}",
        retried_later="{} 秒后重试：实例 {}",
        children="触发子任务：{}",
        comma="、",
        child="任务 {}（实例 {}）",
        child_gone="任务 {} 已不存在",
        child_refused="任务 {} 未触发：本实例由该任务自身的实例触发而来，或触发层级过深",
        late_result="本实例曾被判定为结果丢失，其后执行结果送达，以该结果为准",
    ),
    Language.ZH_TW: FollowUpWords(
        retried_now="立即重試：實例 {}",
        retried_later="{} 秒後重試：實例 {}",
        children="觸發子任務：{}",
        comma="、",
        child="任務 {}（實例 {}）",
        child_gone="任務 {} 已不存在",
        child_refused="任務 {} 未觸發：本實例由該任務自身的實例觸發而來，或觸發層級過深",
        late_result="本實例曾被判定為結果遺失，其後執行結果送達，以該結果為準",
    ),
}


def said_by_executor(message: str | None) -> str | None:
    """A run's message without what came of the run.

    Only for a run that something came of: else a line of the executor's own might be taken for it.
    """
    if message is None or FOLLOWED_BY not in message:
        return message
    return message.rpartition(FOLLOWED_BY)[0]
