# ruff: noqa: RUF001 - Chinese has its own punctuation marks
import dataclasses
import re
from collections.abc import Callable, Mapping

import pytest

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.domain.run import TriggerType
from jobwheel.admin.domain.writes import MOST_MESSAGE_BYTES, cut_message
from jobwheel.admin.engine.executor_answers import Answer, AnswerKind, answer_of, without_reply
from jobwheel.admin.engine.routing import UnknownStrategyError
from jobwheel.admin.engine.trigger_message import TriggerMessages
from jobwheel.admin.engine.trigger_words import WORDS, TriggerWords
from jobwheel.admin.engine.why_words import WHY_WORDS
from jobwheel.schedule import Language
from jobwheel.wire.client import WireReply
from jobwheel.wire.client_request import parse_target
from jobwheel.wire.errors import UncertainError, UnreachableError
from jobwheel.wire.why import Why
from tests.support.engine_parts import dispatch_job, pending_run

NODE = NodeId(7)
A, B = "http://a:1/", "http://b:1/"
LANGUAGES = pytest.mark.parametrize("language", Language)


@pytest.mark.parametrize("text", ["", "short", "ü" * 30_000, "x" * MOST_MESSAGE_BYTES])
def test_what_fits_is_left_alone(text: str) -> None:
    assert cut_message(text) == text


@pytest.mark.parametrize("character", ["x", "ü", "账", "\N{ROCKET}"])
def test_a_longer_text_keeps_its_beginning_and_says_so(character: str) -> None:
    text = character * (MOST_MESSAGE_BYTES + 1)
    cut = cut_message(text)
    size = len(text.encode())
    kept, mark = cut.split("\n")
    assert mark == f"… cut: {size} bytes in all"
    assert MOST_MESSAGE_BYTES - 4 < len(cut.encode()) <= MOST_MESSAGE_BYTES
    assert text.startswith(kept)


def test_what_no_database_can_store_is_shown_as_a_replacement() -> None:
    assert cut_message("a\x00b\ud83dc\udc00") == "a\ufffdb\ufffdc\ufffd"


HEADINGS: Mapping[Language, str] = {
    Language.EN: """\
type: CRON
node: 7
registration: fixed list
addresses: http://a:1/, http://b:1/
route strategy: ROUND, address named by hand
block strategy: SERIAL_EXECUTION
time-out: 30 s
attempt: 2, retries left: 1
""",
    Language.ZH_CN: """\
触发类型：CRON
调度节点：7
注册方式：手动录入
执行器地址：http://a:1/、http://b:1/
路由策略：ROUND（手动指定地址）
阻塞处理策略：SERIAL_EXECUTION
任务超时时间：30 秒
第 2 次执行，剩余重试次数：1
""",
    Language.ZH_TW: """\
觸發類型：CRON
排程節點：7
註冊方式：手動輸入
執行器位址：http://a:1/、http://b:1/
路由策略：ROUND（手動指定位址）
阻塞處理策略：SERIAL_EXECUTION
任務逾時時間：30 秒
第 2 次執行，剩餘重試次數：1
""",
}


@LANGUAGES
def test_the_heading_tells_the_dispatch_line_by_line(language: Language) -> None:
    run = pending_run(1, attempt=2, named_addresses=(A,))
    job = dispatch_job(timeout_s=30, route_strategy="ROUND")
    heading = TriggerMessages(language).heading(NODE, run, job, (A, B), fixed=True, retries_left=1)
    assert heading == HEADINGS[language]


def test_what_is_remembered_of_a_heading_is_not_told_of_another() -> None:
    messages = TriggerMessages()
    job, run = dispatch_job(), pending_run(1)
    cases = [
        (run, job, (A,), False),
        (pending_run(1, trigger_type=TriggerType.MANUAL), job, (A,), False),
        (pending_run(1, named_addresses=(A,)), job, (A,), False),
        (pending_run(1, attempt=2), job, (A,), False),
        (run, job, (A, B), False),
        (run, job, (A,), True),
        (run, dispatch_job(timeout_s=3), (A,), False),
        (run, dispatch_job(route_strategy="LAST"), (A,), False),
        (run, dispatch_job(block_strategy="COVER_EARLY"), (A,), False),
    ]
    told = [
        [messages.heading(NODE, run, job, addresses, fixed=fixed) for run, job, addresses, fixed in cases]
        for _ in range(2)
    ]
    anew = [TriggerMessages().heading(NODE, run, job, addresses, fixed=fixed) for run, job, addresses, fixed in cases]
    assert told == [anew, anew]
    assert len(set(anew)) == len(cases)


def test_what_is_remembered_of_headings_is_bounded() -> None:
    messages = TriggerMessages()
    for n in range(300):
        many = tuple(f"http://host-{n}-{m}:9999/" for m in range(999))
        messages.heading(NODE, pending_run(1), dispatch_job(), many, fixed=False)
        assert len(messages._headings) <= 100


def test_the_heading_of_many_addresses_stays_short() -> None:
    many = tuple(f"http://host-{n}:9999/" for n in range(500))
    heading = TriggerMessages().heading(NODE, pending_run(1), dispatch_job(), many, fixed=False)
    assert "registration: registered" in heading
    assert "host-19:" in heading
    assert "host-20:" not in heading
    assert "and 480 more" in heading
    none = TriggerMessages().heading(NODE, pending_run(1), dispatch_job(), (), fixed=False)
    assert "addresses: none is live" in none
    assert "time-out: none" in none


def test_an_answer_is_told_with_code_and_words_and_bounded() -> None:
    messages = TriggerMessages()
    answer = Answer(AnswerKind.REJECTED, 501, "no such handler")
    assert messages.asked(A, answer) == f"{A} rejected (code 501): no such handler\n"
    assert messages.asked_first(A, answer) == f"asked first, {A} said no (code 501): no such handler\n"
    assert messages.sent_again(A, answer) == f"sent again: {A} rejected (code 501): no such handler\n"
    assert messages.asked(A, Answer(AnswerKind.ACCEPTED, 200, "")) == f"{A} accepted (code 200)\n"
    assert len(messages.asked(A, Answer(AnswerKind.REJECTED, 500, "x" * 100_000))) <= 4000
    assert messages.asked(A, Answer(AnswerKind.REJECTED, 500, "{}\x00\ud83d")).endswith(": {}\ufffd\ufffd\n")
    chinese = TriggerMessages(Language.ZH_CN)
    assert chinese.asked(A, answer) == f"{A} 拒绝执行（code 501）：no such handler\n"


def test_why_there_is_no_answer_is_told_in_the_installations_language() -> None:
    """Somebody who reads Chinese was told in English that an address is none."""
    with pytest.raises(UnreachableError) as refused:
        parse_target("nonsense")
    silent = without_reply(UncertainError(A, Why.NO_REPLY.because()))
    told = {
        language: [
            TriggerMessages(language).asked_first(A, answer).partition("500")[2][1:].strip("）：: \n")
            for answer in (without_reply(refused.value), silent, answer_of(WireReply(200, b"")))
        ]
        for language in Language
    }
    assert told == {
        Language.EN: ["it must begin with http:// or https://", "no reply in time", "an empty answer (HTTP 200)"],
        Language.ZH_CN: ["必须以 http:// 或 https:// 开头", "未在限定时间内应答", "应答为空（HTTP 200"],
        Language.ZH_TW: ["必須以 http:// 或 https:// 開頭", "未在時限內回應", "回應為空（HTTP 200"],
    }
    # What the system says stays as it is.
    assert "code 500）：[Errno 111] refused\n" in TriggerMessages(Language.ZH_CN).asked(
        A, without_reply(UnreachableError(A, "[Errno 111] refused"))
    )


@LANGUAGES
def test_every_cause_is_told_in_each_language_with_its_facts(language: Language) -> None:
    words = WHY_WORDS[language]
    assert set(words) == set(Why)
    assert {why: text.count("{}") for why, text in words.items()} == {why: why.count("{}") for why in Why}
    if language is not Language.EN:
        kept = re.compile("https?://|/run|/trigger|IPv6")
        assert {text for text in words.values() if re.search("[a-z]", kept.sub("", text))} == set()


SENTENCES: Mapping[str, tuple[Callable[[TriggerMessages], str], tuple[str, ...]]] = {
    "shard": (lambda each: each.shard(2, 5), ("2/5",)),
    "left": (lambda each: each.left(A), (A,)),
    "out": (lambda each: each.out(A), (A,)),
    "no_address": (lambda each: each.no_address(), ()),
    "named_not_live": (lambda each: each.named_not_live((A, B)), (A, B)),
    "none_said_yes": (lambda each: each.none_said_yes(0, 30.0), ()),
    "none_in_time": (lambda each: each.none_said_yes(990, 30.0), ("30", "990")),
    "none_reached": (lambda each: each.none_reached(), ()),
    "unknown_strategy": (
        lambda each: each.unknown_strategy(UnknownStrategyError("HASH", ["FIRST", "LAST"])),
        ("'HASH'", "FIRST, LAST"),
    ),
    "over_limit": (lambda each: each.over_limit(3), ("3",)),
    "broken_off": (lambda each: each.broken_off(), ()),
    "no_answer": (lambda each: each.no_answer(), ("5",)),
    "not_readable": (lambda each: each.not_readable(), ("10",)),
    "replaced": (lambda each: each.replaced(), ()),
    "called_idle": (lambda each: each.called_idle(A, 3), (A, "3")),
}


@LANGUAGES
@pytest.mark.parametrize("name", SENTENCES)
def test_every_sentence_is_a_line_with_its_facts(language: Language, name: str) -> None:
    write, facts = SENTENCES[name]
    line = write(TriggerMessages(language))
    assert line.endswith("\n")
    assert line.count("\n") == 1
    assert "{}" not in line
    assert all(fact in line for fact in facts)


def texts(words: TriggerWords) -> dict[str, str]:
    """Every sentence by its name."""
    found = {}
    for name, value in dataclasses.asdict(words).items():
        if isinstance(value, str):
            found[name] = value
        else:
            found |= {f"{name} {kind.name}": text for kind, text in value.items()}
    return found


@pytest.mark.parametrize("language", [Language.ZH_CN, Language.ZH_TW])
def test_the_languages_say_the_same(language: Language) -> None:
    english, other = texts(WORDS[Language.EN]), texts(WORDS[language])
    assert other.keys() == english.keys()
    assert {name: text.count("{}") for name, text in other.items()} == {
        name: text.count("{}") for name, text in english.items()
    }
    untranslated = {name for name, text in other.items() if re.search("[a-z]", text.replace("code", ""))}
    assert untranslated == set()


def test_traditional_characters_are_used_throughout() -> None:
    simplified = set("触发类节点册动录执无线个务时间数广应确认达误测调块过启组检为断进满实丢弃复连续报闲现换")
    traditional = [*texts(WORDS[Language.ZH_TW]).values(), *WHY_WORDS[Language.ZH_TW].values()]
    assert not simplified & set("".join(traditional))
