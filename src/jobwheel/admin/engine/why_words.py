"""Why an address gave no usable answer, in each language; `{}` stands for the same facts as in `Why`."""
# ruff: noqa: RUF001 - Chinese has its own punctuation marks

from collections.abc import Mapping
from typing import Final

from jobwheel.schedule import Language
from jobwheel.wire.why import Why

_ZH_CN: Final = {
    Why.URL_TEXT: "地址为空，或含有空格、控制字符或非 ASCII 字符",
    Why.NO_URL: "不是有效的 URL（{}）",
    Why.SCHEME: "必须以 http:// 或 https:// 开头",
    Why.CREDENTIALS: "不发送 URL 中的用户名和密码",
    Why.PORT_0: "端口 0 无法连接",
    Why.NO_HOST: "未指明主机",
    Why.NO_IPV6: "主机不是有效的 IPv6 地址（{}）",
    Why.IPV6_ZONE: "带区域标识的 IPv6 地址只在一台机器上有意义",
    Why.HOST_CHARACTER: "主机名含有不允许的字符",
    Why.HEADER_NAME: "无法发送请求头 {}：名称不被允许",
    Why.HEADER_VALUE: "无法发送请求头 {}：其值含有不允许的字符",
    Why.NOT_RUNNING: "客户端未运行",
    Why.NO_CONNECTION: "{} 秒内未能建立连接",
    Why.CLOSED_AT_ONCE: "连接建立后立即被关闭",
    Why.STOPPED: "客户端已停止",
    Why.NO_REPLY: "未在限定时间内应答",
    Why.INCOMPLETE: "应答尚未完整，连接就已关闭",
    Why.LOST: "连接中断（{}）",
    Why.CLOSED: "连接已关闭",
    Why.OTHER_PROTOCOL: "对方切换到了其他协议",
    Why.NO_HTTP: "应答不是 HTTP（{}）",
    Why.TOO_LARGE: "应答超过 {} 字节，或其头部超过 {} 字节",
    Why.PROXY: "代理返回了 HTTP {}",
    Why.ELSEWHERE: "HTTP {}：应答指向其他地址，任务不会发往那里；请填写执行器自身的地址",
    Why.EMPTY: "应答为空（HTTP {}）",
    Why.UNREADABLE: "无法识别的应答（HTTP {}）：{}；其开头为 {}",
    Why.NEITHER_PATH: "HTTP {}：既不支持 /run，也不支持 /trigger",
    Why.UNKNOWN_PATH: "HTTP {}：不支持 {}",
}

_ZH_TW: Final = {
    Why.URL_TEXT: "位址為空，或含有空格、控制字元或非 ASCII 字元",
    Why.NO_URL: "不是有效的 URL（{}）",
    Why.SCHEME: "必須以 http:// 或 https:// 開頭",
    Why.CREDENTIALS: "不傳送 URL 中的使用者名稱和密碼",
    Why.PORT_0: "連接埠 0 無法連線",
    Why.NO_HOST: "未指明主機",
    Why.NO_IPV6: "主機不是有效的 IPv6 位址（{}）",
    Why.IPV6_ZONE: "帶區域識別的 IPv6 位址只在一台機器上有意義",
    Why.HOST_CHARACTER: "主機名稱含有不允許的字元",
    Why.HEADER_NAME: "無法傳送請求標頭 {}：名稱不被允許",
    Why.HEADER_VALUE: "無法傳送請求標頭 {}：其值含有不允許的字元",
    Why.NOT_RUNNING: "用戶端未執行",
    Why.NO_CONNECTION: "{} 秒內未能建立連線",
    Why.CLOSED_AT_ONCE: "連線建立後立即被關閉",
    Why.STOPPED: "用戶端已停止",
    Why.NO_REPLY: "未在時限內回應",
    Why.INCOMPLETE: "回應尚未完整，連線就已關閉",
    Why.LOST: "連線中斷（{}）",
    Why.CLOSED: "連線已關閉",
    Why.OTHER_PROTOCOL: "對方切換到了其他通訊協定",
    Why.NO_HTTP: "回應不是 HTTP（{}）",
    Why.TOO_LARGE: "回應超過 {} 位元組，或其標頭超過 {} 位元組",
    Why.PROXY: "代理傳回了 HTTP {}",
    Why.ELSEWHERE: "HTTP {}：回應指向其他位址，任務不會送往那裡；請填寫執行器自身的位址",
    Why.EMPTY: "回應為空（HTTP {}）",
    Why.UNREADABLE: "無法辨識的回應（HTTP {}）：{}；其開頭為 {}",
    Why.NEITHER_PATH: "HTTP {}：既不支援 /run，也不支援 /trigger",
    Why.UNKNOWN_PATH: "HTTP {}：不支援 {}",
}

WHY_WORDS: Final[Mapping[Language, Mapping[Why, str]]] = {
    Language.EN: {why: why.value for why in Why},
    Language.ZH_CN: _ZH_CN,
    Language.ZH_TW: _ZH_TW,
}
