# ruff: noqa: RUF001 - Chinese has its own punctuation marks
import pytest

from jobwheel.schedule import Language, parse_schedule


def words(schedule_type: str, conf: str, language: Language) -> str:
    return parse_schedule(schedule_type, conf, zone="Asia/Shanghai", anchor_ms=None).describe(language)


@pytest.mark.parametrize(
    ("expression", "english", "chinese"),
    [
        ("* * * * * ?", "every second", "每秒"),
        ("*/10 * * * * ?", "every 10 seconds", "每 10 秒"),
        ("5/10 * * * * ?", "every 10 seconds from second 5", "自第 5 秒起每 10 秒"),
        ("15 * * * * ?", "at second 15 of every minute", "每分钟第 15 秒"),
        ("0 * * * * ?", "every minute", "每分钟"),
        ("0 0/5 * * * ?", "every 5 minutes", "每 5 分钟"),
        ("0 2/5 * * * ?", "every 5 minutes from minute 2", "自第 2 分起每 5 分钟"),
        # 56 to 60 is no seven minutes.
        ("0 0/7 * * * ?", "at minutes 0, 7, 14 … 56 of every hour", "每小时第 0、7、14 … 56 分"),
        ("0 4/8 * * * ?", "at minutes 4, 12, 20 … 52 of every hour", "每小时第 4、12、20 … 52 分"),
        ("0 0/17 * * * ?", "at minutes 0, 17, 34 and 51 of every hour", "每小时第 0、17、34、51 分"),
        ("0 0 * * * ?", "every hour", "每小时"),
        ("15 30 * * * ?", "every hour at minute 30, second 15", "每小时第 30 分 15 秒"),
        ("0 0 0/2 * * ?", "every 2 hours", "每 2 小时"),
        ("0 30 1/2 * * ?", "every 2 hours from 01:30", "从 01:30 起每 2 小时"),
        ("0 0 9-17 * * ?", "every hour from 09:00 to 17:00", "每天 09:00 至 17:00 每小时"),
        ("0 0 0/5 * * ?", "every 5 hours from 00:00 to 20:00", "每天 00:00 至 20:00 每 5 小时"),
        ("0 30 2 * * ?", "at 02:30 every day", "每天 02:30"),
        ("0 0,30 9 * * ?", "at 09:00 and 09:30 every day", "每天 09:00、09:30"),
        ("* 17 3 * * ?", "every second in minute 17 of hour 3", "每天 3 时第 17 分内每秒"),
        (
            "0 0/5 9-17 ? * MON-FRI",
            "every 5 minutes between 09:00 and 17:59 on weekdays (Mon\u2013Fri)",
            "每周一至周五 09:00 至 17:59 每 5 分钟",
        ),
        (
            "0 0/10 1,5-7,22 ? * SUN,MON",
            "every 10 minutes in hours 1, 5 to 7 and 22 on Mondays and Sundays",
            "每周一、周日 1、5 至 7、22 时内每 10 分钟",
        ),
        ("0 0 9 ? * 2-6", "at 09:00 on weekdays (Mon\u2013Fri)", "每周一至周五 09:00"),
        ("0 0 9 ? * 1,7", "at 09:00 on weekends (Sat and Sun)", "每周六、周日 09:00"),
        ("0 0 0 L * ?", "at 00:00 on the last day of every month", "每月最后一天 00:00"),
        (
            "0 0 0 1,15,L-3 * ?",
            "at 00:00 on days 1 and 15 and the 3rd day before the last day of every month",
            "每月 1、15 日、倒数第 4 天 00:00",
        ),
        (
            "0 0 0 15W,LW * ?",
            "at 00:00 on the weekday nearest to day 15 and the last weekday of every month",
            "每月最接近 15 日的工作日、最后一个工作日 00:00",
        ),
        (
            "0 0 0 L-1W * ?",
            "at 00:00 on the weekday nearest to the 1st day before the last day of every month",
            "每月最接近倒数第 2 天的工作日 00:00",
        ),
        (
            "0 0 0 L-11,L-22 * ?",
            "at 00:00 on the 11th day before the last day and the 22nd day before the last day of every month",
            "每月倒数第 12 天、倒数第 23 天 00:00",
        ),
        ("0 0 0 30 3-5 ?", "at 00:00 on day 30 of March to May", "3 至 5 月 30 日 00:00"),
        (
            "0 0 0 31 3-5 ?",
            "at 00:00 on day 31 of March to May, where there is such a day",
            "3 至 5 月 31 日 00:00（无此日的月份跳过）",
        ),
        (
            "0 0 0 29 2 ?",
            "at 00:00 on day 29 of February, where there is such a day",
            "2 月 29 日 00:00（无此日的月份跳过）",
        ),
        (
            "0 0 0 L-27 2 ?",
            "at 00:00 on the 27th day before the last day of February",
            "2 月倒数第 28 天 00:00",
        ),
        (
            "0 0 0 L-28 2 ?",
            "at 00:00 on the 28th day before the last day of February, where there is such a day",
            "2 月倒数第 29 天 00:00（无此日的月份跳过）",
        ),
        ("0 0 0 ? * 6L", "at 00:00 on the last Friday of every month", "每月最后一个周五 00:00"),
        ("0 0 0 ? * 6#3", "at 00:00 on the third Friday of every month", "每月第三个周五 00:00"),
        (
            "0 0 0 ? 6 6#5 2026,2028",
            "at 00:00 on the fifth Friday of June, where there is such a day, in 2026 and 2028",
            "2026、2028 年 6 月第五个周五 00:00（无此日的月份跳过）",
        ),
        ("0 0/5 * * 3 ?", "every 5 minutes in March", "3 月每 5 分钟"),
        ("0 0 0 * 1,2 ?", "at 00:00 every day in January and February", "1、2 月每天 00:00"),
        ("0 * * * * ? 2027", "every minute, in 2027", "2027 年每分钟"),
    ],
)
def test_cron_in_words(expression: str, english: str, chinese: str) -> None:
    assert words("CRON", expression, Language.EN) == english
    assert words("CRON", expression, Language.ZH_CN) == chinese


@pytest.mark.parametrize(
    ("expression", "chinese"),
    [
        ("0 0 0 ? * 6#5", "每月第五個週五 00:00（無此日的月份跳過）"),
        ("0 30 1/2 * * ?", "從 01:30 起每 2 小時"),
        ("* 17 3 L-3 * ?", "每月倒數第 4 天 3 時第 17 分內每秒"),
        ("0 * 3 LW * ?", "每月最後一個工作日 03:00 至 03:59 每分鐘"),
    ],
)
def test_cron_in_traditional_characters(expression: str, chinese: str) -> None:
    assert words("CRON", expression, Language.ZH_TW) == chinese


@pytest.mark.parametrize(
    ("schedule_type", "conf", "expected"),
    [
        ("FIX_RATE", "1", ("every second", "每 1 秒", "每 1 秒")),
        ("FIX_RATE", "300", ("every 5 minutes", "每 5 分钟", "每 5 分鐘")),
        ("FIX_RATE", "4200", ("every 1 hour 10 minutes", "每 1 小时 10 分钟", "每 1 小時 10 分鐘")),
        (
            "FIX_DELAY",
            "10",
            ("10 seconds after the end of each run", "每次运行结束后 10 秒", "每次執行結束後 10 秒"),
        ),
        (
            "FIX_DELAY",
            "90061",
            (
                "1 day 1 hour 1 minute 1 second after the end of each run",
                "每次运行结束后 1 天 1 小时 1 分钟 1 秒",
                "每次執行結束後 1 天 1 小時 1 分鐘 1 秒",
            ),
        ),
        (
            "ONCE",
            "2026-12-01T02:00:00Z",
            (
                "once, at 2026-12-01 10:00:00 (Asia/Shanghai)",
                "仅在 2026-12-01 10:00:00 (Asia/Shanghai) 触发一次",
                "僅在 2026-12-01 10:00:00 (Asia/Shanghai) 觸發一次",
            ),
        ),
        ("NONE", "", ("never by itself", "不自动触发", "不自動觸發")),
    ],
)
def test_other_kinds_in_words(schedule_type: str, conf: str, expected: tuple[str, str, str]) -> None:
    assert tuple(words(schedule_type, conf, language) for language in Language) == expected
