"""Intervals in words."""

from typing import Final

from jobwheel.schedule.base import SECONDS_PER_DAY, Language

_UNITS: Final = ((SECONDS_PER_DAY, 0), (3600, 1), (60, 2), (1, 3))
_NAMES: Final = {
    Language.EN: ("day", "hour", "minute", "second"),
    Language.ZH_CN: ("天", "小时", "分钟", "秒"),
    Language.ZH_TW: ("天", "小時", "分鐘", "秒"),
}
_RATE: Final = {Language.EN: "every {}", Language.ZH_CN: "每 {}", Language.ZH_TW: "每 {}"}
_DELAY: Final = {
    Language.EN: "{} after the end of each run",
    Language.ZH_CN: "每次运行结束后 {}",
    Language.ZH_TW: "每次執行結束後 {}",
}


def describe_rate(interval_s: int, language: Language) -> str:
    """`every 5 minutes`."""
    length = duration(interval_s, language)
    if language is Language.EN:
        length = length.removeprefix("1 ") if " " not in length.removeprefix("1 ") else length
    return _RATE[language].format(length)


def describe_delay(interval_s: int, language: Language) -> str:
    """`10 seconds after the end of each run`."""
    return _DELAY[language].format(duration(interval_s, language))


def duration(seconds: int, language: Language) -> str:
    """`1 hour 10 minutes`: exact, in days, hours, minutes and seconds."""
    parts = []
    for unit, index in _UNITS:
        count, seconds = divmod(seconds, unit)
        if count:
            plural = "s" if language is Language.EN and count != 1 else ""
            parts.append(f"{count} {_NAMES[language][index]}{plural}")
    return " ".join(parts)
