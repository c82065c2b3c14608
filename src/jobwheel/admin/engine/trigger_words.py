"""What a trigger message is made of, in each language. `{}` stands for what a sentence is about, in this order."""
# ruff: noqa: RUF001 - Chinese has its own punctuation marks

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jobwheel.admin.engine.executor_answers import AnswerKind
from jobwheel.schedule import Language


@dataclass(frozen=True, slots=True)
class TriggerWords:
    """One language's sentences, without the ends of their lines."""

    # The heading.
    trigger_type: str
    node: str
    registered: str
    fixed_list: str
    addresses: str
    comma: str
    and_more: str
    none_live: str
    route_strategy: str
    by_hand: str
    block_strategy: str
    timeout: str
    no_timeout: str
    attempt: str
    shard: str
    # What an address said: address and code; and what comes between that and its own words.
    colon: str
    answers: Mapping[AnswerKind, str]
    answers_first: Mapping[AnswerKind, str]
    left: str
    drained: str
    out: str
    just_out: str
    # How it ended.
    no_address: str
    no_group: str
    list_empty: str
    all_out: str
    all_out_fixed: str
    named_not_live: str
    none_said_yes: str
    none_in_time: str
    none_reached: str
    none_reached_in_time: str
    unknown_strategy: str
    over_limit: str
    damaged: str
    # What became of an unconfirmed run.
    broken_off: str
    sent_again: str
    no_answer: str
    not_readable: str
    replaced: str
    called_idle: str
    # What became of an accepted run without a result.
    lost_unknown: str
    lost_replaced: str
    lost_gone: str
    lost_idle: str
    # What became of a run that somebody wants to end.
    kill_asked: str
    kill_told: str
    killed_unsent: str
    killed_silent: str


_EN: Final = TriggerWords(
    trigger_type="type: {}",
    node="node: {}",
    registered="registration: registered",
    fixed_list="registration: fixed list",
    addresses="addresses: {}",
    comma=", ",
    and_more=" and {} more",
    none_live="none is live",
    route_strategy="route strategy: {}",
    by_hand=", address named by hand",
    block_strategy="block strategy: {}",
    timeout="time-out: {} s",
    no_timeout="time-out: none",
    attempt="attempt: {}, retries left: {}",
    shard="shard: {}/{}",
    colon=": ",
    answers={
        AnswerKind.ACCEPTED: "{} accepted (code {})",
        AnswerKind.STOPPING: "{} takes no new runs (code {})",
        AnswerKind.REJECTED: "{} rejected (code {})",
        AnswerKind.UNREACHABLE: "{} unreachable (code {})",
        AnswerKind.UNCONFIRMED: "{} gave no usable answer: the run may or may not have arrived (code {})",
    },
    answers_first={
        AnswerKind.ACCEPTED: "asked first, {} said yes (code {})",
        AnswerKind.STOPPING: "asked first, {} takes no new runs (code {})",
        AnswerKind.REJECTED: "asked first, {} said no (code {})",
        AnswerKind.UNREACHABLE: "asked first, {} unreachable (code {})",
        AnswerKind.UNCONFIRMED: "asked first, {} gave no usable answer (code {})",
    },
    left="{} has left the registry",
    drained="being drained by an operator, so that no new run goes there: {}",
    out="{} was unreachable a moment ago",
    just_out="it was a moment ago, and was not asked again",
    no_address="no live address: start an executor of the group, or see why none beats",
    no_group="the job's group {} does not exist any more: give the job one that does",
    list_empty="no live address: the fixed list of the job's group holds none of 1 to 255 characters",
    all_out="no live address: each that is registered ({}) was unreachable, and has not beaten since",
    all_out_fixed="no live address: each of the fixed list ({}) was unreachable less than 30 s ago",
    named_not_live="no live address: of those named by hand ({}) none is live now; see why, or name another",
    none_said_yes="no address that was asked said yes",
    none_in_time="no address that was asked within {} s said yes, and {} more were not asked",
    none_reached="no address could be reached",
    none_reached_in_time="no address could be reached within {} s, and {} more were not tried",
    unknown_strategy="route strategy {} is not one of {}",
    over_limit="discarded: {} runs of the job are under way, and no more may be at once",
    damaged="the job's row in the database is damaged, so that it was not sent: {}; save the job anew",
    broken_off="its sending was broken off",
    sent_again="sent again: ",
    no_answer="not confirmed: no answer for {} minutes",
    not_readable="not confirmed: no readable answer for {} minutes",
    replaced="not confirmed: another process answers at this address now",
    called_idle="not confirmed: {} called the job idle {} times running",
    lost_unknown="lost: {} does not know the run any more, and gave no result",
    lost_replaced="lost: another process has taken the place of the one at {} that had the run",
    lost_gone="lost: nobody was heard at {} for {} minutes",
    lost_idle="lost: {} called the job idle {} times running, and gave no result",
    kill_asked="kill: {} wants this run to end",
    kill_told="kill: {} was told (code {})",
    killed_unsent="killed before it was sent",
    killed_silent="killed: {} gave no result within {} s after it was to end the run",
)

_ZH_CN: Final = TriggerWords(
    trigger_type="触发类型：{}",
    node="调度节点：{}",
    registered="注册方式：自动注册",
    fixed_list="注册方式：手动录入",
    addresses="执行器地址：{}",
    comma="、",
    and_more=" 等，另有 {} 个",
    none_live="无在线地址",
    route_strategy="路由策略：{}",
    by_hand="（手动指定地址）",
    block_strategy="阻塞处理策略：{}",
    timeout="任务超时时间：{} 秒",
    no_timeout="任务超时时间：不限",
    attempt="第 {} 次执行，剩余重试次数：{}",
    shard="广播分片：{}/{}",
    colon="：",
    answers={
        AnswerKind.ACCEPTED: "{} 已接收（code {}）",
        AnswerKind.STOPPING: "{} 不再接收新任务（code {}）",
        AnswerKind.REJECTED: "{} 拒绝执行（code {}）",
        AnswerKind.UNREACHABLE: "{} 无法连接（code {}）",
        AnswerKind.UNCONFIRMED: "{} 未返回有效应答，无法确认任务是否已送达（code {}）",
    },
    answers_first={
        AnswerKind.ACCEPTED: "调度前探测：{} 可用（code {}）",
        AnswerKind.STOPPING: "调度前探测：{} 不再接收新任务（code {}）",
        AnswerKind.REJECTED: "调度前探测：{} 不可用（code {}）",
        AnswerKind.UNREACHABLE: "调度前探测：{} 无法连接（code {}）",
        AnswerKind.UNCONFIRMED: "调度前探测：{} 未返回有效应答（code {}）",
    },
    left="{} 已从注册中心下线",
    drained="以下地址正在被运维人员排空，不再分配新任务：{}",
    out="{} 刚才无法连接，已跳过",
    just_out="刚才已无法连接，未再探测",
    no_address="没有在线的执行器地址：请启动该分组的执行器，或检查心跳为何中断",
    no_group="任务所属的分组 {} 已不存在：请为任务选择其他分组",
    list_empty="没有在线的执行器地址：该分组手动录入的地址列表中没有长度为 1 至 255 个字符的地址",
    all_out="没有在线的执行器地址：已注册的地址（{}）均无法连接，且此后没有心跳",
    all_out_fixed="没有在线的执行器地址：手动录入的地址（{}）在 30 秒内均无法连接",
    named_not_live="没有在线的执行器地址：手动指定的地址（{}）均不在线，请检查原因或改用其他地址",
    none_said_yes="所探测的地址均不可用",
    none_in_time="{} 秒内所探测的地址均不可用，另有 {} 个地址未再探测",
    none_reached="所有地址均无法连接",
    none_reached_in_time="{} 秒内所有已尝试的地址均无法连接，另有 {} 个地址未再尝试",
    unknown_strategy="未知的路由策略 {}，可选值：{}",
    over_limit="已丢弃：该任务正在执行的实例已达上限 {} 个",
    damaged="数据库中该任务的记录已损坏，未发送：{}；请重新保存该任务",
    broken_off="发送过程中断",
    sent_again="重新发送：",
    no_answer="无法确认：{} 分钟内没有应答",
    not_readable="无法确认：{} 分钟内没有可识别的应答",
    replaced="无法确认：该地址上的执行器进程已更换",
    called_idle="无法确认：{} 连续 {} 次报告该任务空闲",
    lost_unknown="任务结果丢失：{} 已不再持有该次执行，也没有返回结果",
    lost_replaced="任务结果丢失：{} 上原执行该任务的进程已被新进程取代",
    lost_gone="任务结果丢失：{} 已有 {} 分钟没有任何消息",
    lost_idle="任务结果丢失：{} 连续 {} 次回报该任务空闲，且没有返回结果",
    kill_asked="终止：{} 要求终止本次执行",
    kill_told="终止：已通知 {}（code {}）",
    killed_unsent="发送前已终止",
    killed_silent="已终止：要求终止后，{} 在 {} 秒内没有返回结果",
)

_ZH_TW: Final = TriggerWords(
    trigger_type="觸發類型：{}",
    node="排程節點：{}",
    registered="註冊方式：自動註冊",
    fixed_list="註冊方式：手動輸入",
    addresses="執行器位址：{}",
    comma="、",
    and_more=" 等，另有 {} 個",
    none_live="無上線位址",
    route_strategy="路由策略：{}",
    by_hand="（手動指定位址）",
    block_strategy="阻塞處理策略：{}",
    timeout="任務逾時時間：{} 秒",
    no_timeout="任務逾時時間：不限",
    attempt="第 {} 次執行，剩餘重試次數：{}",
    shard="廣播分片：{}/{}",
    colon="：",
    answers={
        AnswerKind.ACCEPTED: "{} 已接收（code {}）",
        AnswerKind.STOPPING: "{} 不再接收新任務（code {}）",
        AnswerKind.REJECTED: "{} 拒絕執行（code {}）",
        AnswerKind.UNREACHABLE: "{} 無法連線（code {}）",
        AnswerKind.UNCONFIRMED: "{} 未傳回有效回應，無法確認任務是否已送達（code {}）",
    },
    answers_first={
        AnswerKind.ACCEPTED: "派發前探測：{} 可用（code {}）",
        AnswerKind.STOPPING: "派發前探測：{} 不再接收新任務（code {}）",
        AnswerKind.REJECTED: "派發前探測：{} 不可用（code {}）",
        AnswerKind.UNREACHABLE: "派發前探測：{} 無法連線（code {}）",
        AnswerKind.UNCONFIRMED: "派發前探測：{} 未傳回有效回應（code {}）",
    },
    left="{} 已從註冊中心下線",
    drained="以下位址正由維運人員排空，不再分派新任務：{}",
    out="{} 剛才無法連線，已略過",
    just_out="剛才已無法連線，未再探測",
    no_address="沒有上線的執行器位址：請啟動該群組的執行器，或檢查心跳為何中斷",
    no_group="任務所屬的群組 {} 已不存在：請為任務選擇其他群組",
    list_empty="沒有上線的執行器位址：該群組手動輸入的位址清單中沒有長度為 1 至 255 個字元的位址",
    all_out="沒有上線的執行器位址：已註冊的位址（{}）均無法連線，且此後沒有心跳",
    all_out_fixed="沒有上線的執行器位址：手動輸入的位址（{}）在 30 秒內均無法連線",
    named_not_live="沒有上線的執行器位址：手動指定的位址（{}）均未上線，請檢查原因或改用其他位址",
    none_said_yes="所探測的位址均不可用",
    none_in_time="{} 秒內所探測的位址均不可用，另有 {} 個位址未再探測",
    none_reached="所有位址均無法連線",
    none_reached_in_time="{} 秒內所有已嘗試的位址均無法連線，另有 {} 個位址未再嘗試",
    unknown_strategy="未知的路由策略 {}，可選值：{}",
    over_limit="已捨棄：該任務執行中的實例已達上限 {} 個",
    damaged="資料庫中該任務的記錄已損壞，未傳送：{}；請重新儲存該任務",
    broken_off="傳送過程中斷",
    sent_again="重新傳送：",
    no_answer="無法確認：{} 分鐘內沒有回應",
    not_readable="無法確認：{} 分鐘內沒有可辨識的回應",
    replaced="無法確認：該位址上的執行器行程已更換",
    called_idle="無法確認：{} 連續 {} 次回報該任務閒置",
    lost_unknown="任務結果遺失：{} 已不再持有該次執行，也沒有傳回結果",
    lost_replaced="任務結果遺失：{} 上原執行該任務的行程已被新行程取代",
    lost_gone="任務結果遺失：{} 已有 {} 分鐘沒有任何消息",
    lost_idle="任務結果遺失：{} 連續 {} 次回報該任務閒置，且沒有傳回結果",
    kill_asked="終止：{} 要求終止本次執行",
    kill_told="終止：已通知 {}（code {}）",
    killed_unsent="傳送前已終止",
    killed_silent="已終止：要求終止後，{} 在 {} 秒內沒有傳回結果",
)

WORDS: Final[Mapping[Language, TriggerWords]] = {
    Language.EN: _EN,
    Language.ZH_CN: _ZH_CN,
    Language.ZH_TW: _ZH_TW,
}
