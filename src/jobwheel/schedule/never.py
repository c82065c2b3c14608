"""The schedule of a job that only others start."""

from dataclasses import dataclass
from typing import Final

from jobwheel.schedule.base import Language

_WORDS: Final = {Language.EN: "never by itself", Language.ZH_CN: "不自动触发", Language.ZH_TW: "不自動觸發"}


@dataclass(frozen=True, slots=True)
class NeverSchedule:
    """No instant at all: the job runs by hand, through the API or after a parent."""

    def next_after(self, base_ms: int) -> int | None:  # noqa: ARG002 - the shape of every schedule
        """Always None."""
        return None

    def describe(self, language: Language) -> str:
        """See `Schedule.describe`."""
        return _WORDS[language]
