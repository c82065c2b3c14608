import json

import pytest

from jobwheel.wire.dialects import (
    decode_callbacks,
    decode_log_query,
    encode_callbacks,
    encode_callbacks_for_a_and_b,
    encode_log_query,
)
from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.messages import Dialect, LogQuery, Result

GOOD = {"logId": 1, "logDateTim": 1795651200000, "handleCode": 200, "handleMsg": None}
GOOD_RESULT = Result(log_id=1, log_date_time=1795651200000, code=200, message=None)


@pytest.mark.parametrize("dialect", list(Dialect))
def test_callbacks_come_back_as_they_went(dialect: Dialect) -> None:
    results = [GOOD_RESULT, Result(log_id=2, log_date_time=0, code=502, message='"\\\x0c\x00 任务 \U0001f600')]
    batch = decode_callbacks(encode_callbacks(results, dialect))
    assert (batch.results, batch.rejected) == (results, [])


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_message_that_no_utf_8_can_carry_is_sent_all_the_same(dialect: Dialect) -> None:
    body = encode_callbacks([Result(log_id=1, log_date_time=0, code=500, message="file \udcff")], dialect)
    assert decode_callbacks(body).results[0].message == "file \ufffd"


def test_a_callback_for_a_and_b_has_what_each_of_them_reads() -> None:
    results = [GOOD_RESULT, Result(log_id=2, log_date_time=0, code=502, message="任务 \udcff")]
    both = json.loads(encode_callbacks_for_a_and_b(results))
    for dialect in (Dialect.A, Dialect.B):
        for item, alone in zip(both, json.loads(encode_callbacks(results, dialect)), strict=True):
            assert item.items() >= alone.items()
    assert decode_callbacks(json.dumps(both).encode()).results[0] == GOOD_RESULT


@pytest.mark.parametrize("dialect", list(Dialect))
def test_no_callbacks_are_no_error(dialect: Dialect) -> None:
    batch = decode_callbacks(encode_callbacks([], dialect))
    assert (batch.results, batch.rejected) == ([], [])


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"logDateTim": 5, "handleCode": 200}, "item 1: logId: is missing"),
        ({"logId": None, "handleCode": 200}, "item 1: logId: is missing"),
        ({"logId": "1", "handleCode": 200}, "item 1: logId: expected int, got str"),
        ({"logId": 2**63, "handleCode": 200}, "item 1: logId: expected int <= "),
        ({"logId": 1, "handleCode": 2**31}, "item 1: handleCode: expected int <= "),
        ({"logId": 1}, "item 1: handleCode: is missing"),
        ({"logId": 1, "handleCode": None, "executeResult": None}, "item 1: handleCode: is missing"),
        ({"logId": 1, "executeResult": {}}, "item 1: executeResult.code: is missing"),
        ({"logId": 1, "executeResult": {"code": "200"}}, "item 1: executeResult.code: expected int, got str"),
        ({"logId": 1, "handleCode": 200, "handleMsg": {}}, "item 1: handleMsg: expected str"),
        (None, "item 1: expected object, got null"),
        (7, "item 1: expected object, got int"),
        ([GOOD], "item 1: expected object, got array"),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True], ids=["list", "callbackList"])
def test_a_bad_item_is_named_and_the_others_are_read(bad: object, why: str, *, wrapped: bool) -> None:
    items = [GOOD, bad, {**GOOD, "logId": 3}]
    batch = decode_callbacks(json.dumps({"callbackList": items} if wrapped else items).encode())
    assert [result.log_id for result in batch.results] == [1, 3]
    assert len(batch.rejected) == 1
    assert batch.rejected[0].startswith(why)


def test_a_body_of_bad_items_does_not_keep_the_admin_busy() -> None:
    # Named one by one, these took 90 s.
    with pytest.raises(MalformedMessageError, match=r"more than 10000 of its 5000001 items .* item 0: expected"):
        decode_callbacks(b"[" + b"1," * 5_000_000 + b"1]")
    some = decode_callbacks(b"[" + b"1," * 9_999 + b'1,{"logId":1,"handleCode":200}]')
    assert (len(some.rejected), [result.log_id for result in some.results]) == (10_000, [1])


@pytest.mark.parametrize("message", [rb"\ud83d", b"\xc8\xce", b"two\nlines"])
def test_an_item_with_broken_text_keeps_its_result_and_stops_no_other(message: bytes) -> None:
    body = b'[{"logId":1,"handleCode":200,"handleMsg":"%b"},{"logId":2,"handleCode":500}]' % message
    batch = decode_callbacks(body)
    assert [(result.log_id, result.code) for result in batch.results] == [(1, 200), (2, 500)]
    assert batch.rejected == []


def test_a_deep_item_is_refused_and_stops_nothing_from_going_on() -> None:
    with pytest.raises(MalformedMessageError):
        decode_callbacks(b'[{"logId":1,"handleCode":200},' + b"[" * 200_000)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"null", "expected array, got null"),
        (b"7", "expected array, got int"),
        (b'"text"', "expected array, got str"),
        (b"{}", "callbackList: is missing"),
        (b'{"callbackList": null}', "callbackList: is missing"),
        (b'{"callbackList": {}}', "callbackList: expected array, got object"),
        (b'[{"logId":1', "not JSON"),
        (b'{"callbackList":[', "not JSON"),
    ],
)
def test_what_is_no_callback_at_all_is_refused(body: bytes, words: str) -> None:
    with pytest.raises(MalformedMessageError, match=words):
        decode_callbacks(body)


@pytest.mark.parametrize("dialect", list(Dialect))
def test_log_requests_come_back_as_they_went(dialect: Dialect) -> None:
    query = LogQuery(log_id=90071, log_date_time=1795651200000, from_line=42)
    assert decode_log_query(encode_log_query(query, dialect)) == query


@pytest.mark.parametrize("line", ["0", "-5", "null"])
def test_a_line_below_one_means_one(line: str) -> None:
    assert decode_log_query(b'{"logId":1,"fromLineNum":%b}' % line.encode()).from_line == 1


def test_a_log_request_needs_its_log_id() -> None:
    with pytest.raises(MalformedMessageError, match="logId: is missing"):
        decode_log_query(b'{"logDateTim":1}')
