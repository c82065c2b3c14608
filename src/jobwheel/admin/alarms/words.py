"""What alarms are made of, in each language. `{}` stands for what an alarm is about."""
# ruff: noqa: RUF001 - Chinese has its own punctuation marks

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jobwheel.admin.domain.alarm import AlarmKind
from jobwheel.schedule import Language


@dataclass(frozen=True, slots=True)
class AlarmWords:
    """One language's titles by kind, and the names of the lines."""

    titles: Mapping[AlarmKind, str]
    times: str
    group: str
    job: str
    owner: str
    run: str
    planned: str
    at: str
    between: str
    attempts: str
    message: str
    node: str


_EN: Final = AlarmWords(
    titles={
        AlarmKind.FAILED: "{} failed",
        AlarmKind.TIMED_OUT: "{} timed out",
        AlarmKind.LOST: "{} was lost",
        AlarmKind.KILLED: "{} was killed",
        AlarmKind.COVERED: "{} was ended by a later run",
        AlarmKind.DISCARDED: "{} was discarded",
        AlarmKind.RECOVERED: "{} succeeds again",
        AlarmKind.LATE_START: "{} has not started in time",
        AlarmKind.LONG_RUN: "{} runs longer than it should",
        AlarmKind.BACKLOG: "runs of {} pile up",
        AlarmKind.GROUP_OFFLINE: "{} has no live executor",
        AlarmKind.GROUP_ONLINE: "{} has a live executor again",
        AlarmKind.EXECUTOR_GONE: "an executor of {} is gone",
        AlarmKind.EXECUTOR_BACK: "an executor of {} is back",
        AlarmKind.NO_SCHEDULING_PASS: "the admin plans nothing",
        AlarmKind.CLOCK_OFF: "the clock of an admin is wrong",
        AlarmKind.ADMIN_WELL: "the admin works again",
        AlarmKind.OUTDATED: "alarms that were too old to be sent",
        AlarmKind.TEST: "this is a test",
    },
    times=" ({} times)",
    group="Group",
    job="Job",
    owner="Owner",
    run="Run",
    planned="Planned",
    at="At",
    between="Between",
    attempts="Attempts",
    message="Message",
    node="Node",
)
_ZH_CN: Final = AlarmWords(
    titles={
        AlarmKind.FAILED: "{} 执行失败",
        AlarmKind.TIMED_OUT: "{} 执行超时",
        AlarmKind.LOST: "{} 结果丢失",
        AlarmKind.KILLED: "{} 被终止",
        AlarmKind.COVERED: "{} 被后续调度覆盖",
        AlarmKind.DISCARDED: "{} 被丢弃",
        AlarmKind.RECOVERED: "{} 恢复成功",
        AlarmKind.LATE_START: "{} 未按时开始",
        AlarmKind.LONG_RUN: "{} 运行时间过长",
        AlarmKind.BACKLOG: "{} 的调度积压",
        AlarmKind.GROUP_OFFLINE: "{} 没有在线的执行器",
        AlarmKind.GROUP_ONLINE: "{} 的执行器恢复在线",
        AlarmKind.EXECUTOR_GONE: "{} 的一个执行器离线",
        AlarmKind.EXECUTOR_BACK: "{} 的一个执行器恢复在线",
        AlarmKind.NO_SCHEDULING_PASS: "调度中心停止调度",
        AlarmKind.CLOCK_OFF: "调度中心的时钟不准",
        AlarmKind.ADMIN_WELL: "调度中心恢复正常",
        AlarmKind.OUTDATED: "过期未发送的告警",
        AlarmKind.TEST: "这是一条测试消息",
    },
    times="（{} 次）",
    group="执行器",
    job="任务",
    owner="负责人",
    run="调度日志",
    planned="计划时间",
    at="时间",
    between="时间段",
    attempts="尝试次数",
    message="信息",
    node="节点",
)
_ZH_TW: Final = AlarmWords(
    titles={
        AlarmKind.FAILED: "{} 執行失敗",
        AlarmKind.TIMED_OUT: "{} 執行逾時",
        AlarmKind.LOST: "{} 結果遺失",
        AlarmKind.KILLED: "{} 被終止",
        AlarmKind.COVERED: "{} 被後續排程覆蓋",
        AlarmKind.DISCARDED: "{} 被丟棄",
        AlarmKind.RECOVERED: "{} 恢復成功",
        AlarmKind.LATE_START: "{} 未按時開始",
        AlarmKind.LONG_RUN: "{} 執行時間過長",
        AlarmKind.BACKLOG: "{} 的排程積壓",
        AlarmKind.GROUP_OFFLINE: "{} 沒有線上的執行器",
        AlarmKind.GROUP_ONLINE: "{} 的執行器恢復上線",
        AlarmKind.EXECUTOR_GONE: "{} 的一個執行器離線",
        AlarmKind.EXECUTOR_BACK: "{} 的一個執行器恢復上線",
        AlarmKind.NO_SCHEDULING_PASS: "排程中心停止排程",
        AlarmKind.CLOCK_OFF: "排程中心的時鐘不準",
        AlarmKind.ADMIN_WELL: "排程中心恢復正常",
        AlarmKind.OUTDATED: "過期未傳送的告警",
        AlarmKind.TEST: "這是一則測試訊息",
    },
    times="（{} 次）",
    group="執行器",
    job="任務",
    owner="負責人",
    run="排程日誌",
    planned="計劃時間",
    at="時間",
    between="時間段",
    attempts="嘗試次數",
    message="訊息",
    node="節點",
)
WORDS: Final[Mapping[Language, AlarmWords]] = {Language.EN: _EN, Language.ZH_CN: _ZH_CN, Language.ZH_TW: _ZH_TW}
