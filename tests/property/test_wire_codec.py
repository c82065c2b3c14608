import contextlib
import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET

from jobwheel.wire.batch import decode_batch, decode_batch_reply, encode_batch, encode_batch_reply
from jobwheel.wire.codec import decode, decode_envelope, encode, encode_envelope, envelope_value
from jobwheel.wire.dialects import decode_callbacks, decode_log_query, encode_callbacks, encode_log_query
from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.mend import mend_json, without_surrogates
from jobwheel.wire.messages import (
    Dialect,
    Envelope,
    JobQuery,
    LogPage,
    LogQuery,
    Parent,
    Reason,
    RegistryRequest,
    Result,
    TriggerRequest,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ANY_TEXT = st.text(st.characters())
RESULTS = st.lists(st.builds(Result, log_id=INT64, log_date_time=INT64, code=INT32, message=st.none() | TEXT))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)
FIELDS = [
    "jobId", "logId", "logDateTim", "logDateTime", "fromLineNum", "handleCode", "handleMsg", "executeResult",
    "callbackList", "code", "msg", "content", "data", "registryGroup", "registryKey", "registryValue", "features",
    "executorParams", "executorTimeout", "parent", "resend", "instance", "attempt",
]  # fmt: skip
RUNS = st.builds(
    TriggerRequest,
    job_id=INT64,
    log_id=INT64,
    executor_params=st.none() | TEXT,
    executor_timeout=INT32,
    attempt=st.just(UNSET) | INT32,
    resend=st.just(UNSET) | st.booleans(),
    parent=st.just(UNSET) | st.builds(Parent, log_id=INT64, handle_msg=st.none() | TEXT),
)
ENVELOPES = st.builds(
    encode_envelope, INT32, st.none() | ANY_TEXT, instance=st.none() | TEXT, reason=st.none() | st.sampled_from(Reason)
)
NEARLY = st.dictionaries(st.sampled_from(FIELDS), JSON | INT64 | st.none())
# Python's NaN and Infinity are no JSON: with them the whole body is none.
STRANGE_ITEMS = (
    (JSON | NEARLY)
    .map(lambda value: json.dumps(value).encode())
    .filter(lambda text: b"NaN" not in text and b"Infinity" not in text)
)
TYPES: list[type[Any]] = [TriggerRequest, JobQuery, RegistryRequest, Envelope, LogPage]


def decode_everything(body: bytes) -> None:
    """Read the body as each kind of message. Anything but a `MalformedMessageError` is a fault."""
    for message_type in TYPES:
        with contextlib.suppress(MalformedMessageError):
            decode(body, message_type)
    for decoder in (decode_callbacks, decode_log_query, decode_batch):
        with contextlib.suppress(MalformedMessageError):
            decoder(body)
    with contextlib.suppress(MalformedMessageError):
        envelope_value(decode_envelope(body), LogPage)
    with contextlib.suppress(MalformedMessageError):
        decode_batch_reply(decode_envelope(body), 1)


@given(st.lists(RUNS, max_size=5))
def test_runs_come_back_from_a_batch_as_they_went(requests: list[TriggerRequest]) -> None:
    assert decode_batch(encode_batch(requests)) == requests


@given(st.lists(ENVELOPES, max_size=5), st.integers(0, 6))
def test_the_answers_to_a_batch_come_back_in_their_order_and_number(envelopes: list[bytes], count: int) -> None:
    reply = decode_envelope(encode_batch_reply(envelopes, instance="i-1"))
    if count == len(envelopes):
        assert decode_batch_reply(reply, count) == [decode_envelope(envelope) for envelope in envelopes]
    else:
        with pytest.raises(MalformedMessageError, match=rf"expected {count} envelopes, got {len(envelopes)}"):
            decode_batch_reply(reply, count)


@given(st.lists(RUNS.map(encode) | STRANGE_ITEMS, max_size=3))
@example([b'{"jobId": {"\\ud800": null}}', b'{"jobId": 7, "logId": 1, "executorParams": "\\ud83d", "attempt": null}'])
def test_each_run_of_a_batch_is_judged_as_if_it_came_alone(items: list[bytes]) -> None:
    for item, judged in zip(items, decode_batch(b"[" + b",".join(items) + b"]"), strict=True):
        if isinstance(judged, MalformedMessageError):
            with pytest.raises(MalformedMessageError, match=re.escape(judged.message)):
                decode(item, TriggerRequest)
        else:
            assert judged == decode(item, TriggerRequest)


@given(RESULTS, st.sampled_from(Dialect))
@example([Result(1, 0, 200, "".join(map(chr, range(0x20)))), Result(2, 0, 500, '\u2028\ufeff\x7f\\"/')], Dialect.A)
def test_any_text_comes_back_from_a_callback_as_it_went(results: list[Result], dialect: Dialect) -> None:
    batch = decode_callbacks(encode_callbacks(results, dialect))
    assert (batch.results, batch.rejected) == (results, [])


@given(ANY_TEXT, st.sampled_from(Dialect))
def test_a_callback_can_always_be_sent(message: str, dialect: Dialect) -> None:
    (result,) = decode_callbacks(encode_callbacks([Result(1, 0, 500, message)], dialect)).results
    assert result.message == without_surrogates(message)


@given(TEXT, TEXT, INT64)
def test_any_trigger_comes_back_as_it_went(handler: str, params: str, log_id: int) -> None:
    request = TriggerRequest(job_id=1, log_id=log_id, executor_handler=handler, executor_params=params)
    assert decode(encode(request), TriggerRequest) == request


@given(INT64, INT64, st.integers(1, 2**63 - 1), st.sampled_from(Dialect))
def test_any_log_request_comes_back_as_it_went(log_id: int, date: int, line: int, dialect: Dialect) -> None:
    query = LogQuery(log_id, date, line)
    assert decode_log_query(encode_log_query(query, dialect)) == query


@given(INT32, st.none() | TEXT, TEXT)
def test_any_envelope_comes_back_as_it_went(code: int, msg: str | None, value: str) -> None:
    envelope = decode_envelope(encode_envelope(code, msg, value))
    assert (envelope.code, envelope.msg, envelope_value(envelope, str)) == (code, msg, value)


@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf{}")
def test_no_bytes_do_more_than_be_refused(body: bytes) -> None:
    decode_everything(body)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[" * 100_000, id="lists"),
        pytest.param(b'[{"a":' * 100_000, id="lists of objects"),
        pytest.param(b'{"callbackList":' + b"[" * 100_000, id="a list of lists"),
        pytest.param(b'{"callbackList":[' + b'{"executeResult":' * 100_000, id="a result of results"),
        pytest.param(b'{"code":200,"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}", id="a value"),
    ],
)
def test_no_depth_does_more_than_be_refused(body: bytes) -> None:
    decode_everything(body)


@given(JSON | NEARLY | st.lists(NEARLY, max_size=3) | st.fixed_dictionaries({"callbackList": st.lists(NEARLY)}))
def test_no_json_does_more_than_be_refused(value: object) -> None:
    decode_everything(json.dumps(value).encode())
    decode_everything(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


@given(ANY_TEXT)
def test_mended_json_is_json_that_says_the_same(text: str) -> None:
    mended = json.loads(mend_json(json.dumps({"key": text}).encode()))
    assert mended == {"key": without_surrogates(text)}


@given(JSON.filter(lambda value: "\\ud" not in json.dumps(value)))
def test_mending_leaves_good_json_as_it_is(value: object) -> None:
    body = json.dumps(value).encode()
    assert mend_json(body) == body
