import pytest

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.domain.writes import MOST_MESSAGE_BYTES, cut_message
from jobwheel.admin.engine import trigger_message
from jobwheel.admin.engine.executor_client import Answer, AnswerKind
from tests.support.engine_parts import dispatch_job, pending_run


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


def test_the_heading_tells_the_dispatch_line_by_line() -> None:
    run = pending_run(1, attempt=2, named_addresses=("http://a:1/",))
    job = dispatch_job(timeout_s=30, route_strategy="ROUND")
    lines = trigger_message.heading(NodeId(7), run, job, ["http://a:1/", "http://b:1/"], fixed=True).splitlines()
    assert lines == [
        "type: CRON",
        "node: 7",
        "registration: fixed list",
        "addresses: http://a:1/, http://b:1/",
        "route strategy: ROUND, address named by hand",
        "block strategy: SERIAL_EXECUTION",
        "time-out: 30 s",
        "attempt: 2",
    ]


def test_the_heading_of_many_addresses_stays_short() -> None:
    many = [f"http://host-{n}:9999/" for n in range(500)]
    heading = trigger_message.heading(NodeId(7), pending_run(1), dispatch_job(), many, fixed=False)
    assert "host-19:" in heading
    assert "host-20:" not in heading
    assert "and 480 more" in heading
    none = trigger_message.heading(NodeId(7), pending_run(1), dispatch_job(), [], fixed=False)
    assert "addresses: none is live" in none
    assert "time-out: none" in none


def test_an_answer_is_told_with_code_and_words_and_bounded() -> None:
    answer = Answer(AnswerKind.REJECTED, 501, "no such handler")
    assert trigger_message.asked("http://a:1/", answer) == "http://a:1/ rejected (code 501): no such handler\n"
    assert trigger_message.asked("http://a:1/", Answer(AnswerKind.ACCEPTED, 200, "")).endswith("(code 200)\n")
    long = trigger_message.asked("http://a:1/", Answer(AnswerKind.REJECTED, 500, "x" * 100_000))
    assert len(long) <= 4000
