import json

import pytest

from jobwheel.wire.batch import MOST_IN_BATCH, decode_batch, decode_batch_reply, encode_batch
from jobwheel.wire.codec import decode_envelope
from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.messages import TriggerRequest

GOOD = b'{"jobId":7,"logId":1}'


def judged(*items: bytes) -> list[str | None]:
    """What is wrong with each item of a batch; None: nothing."""
    found = decode_batch(b"[" + b",".join(items) + b"]")
    return [each.message if isinstance(each, MalformedMessageError) else None for each in found]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"{}", "jobId: is missing"),
        (b'{"jobId":7}', "logId: is missing"),
        (b'{"jobId":"7","logId":1}', "jobId: expected int, got str"),
        (b'{"jobId":7,"logId":1,"parent":{"logId":[]}}', "parent.logId: expected int, got array"),
        (b"null", "expected object, got null"),
        (b"[]", "expected object, got array"),
        (b"7", "expected object, got int"),
    ],
)
def test_a_bad_run_is_named_in_its_place_and_spoils_no_other(bad: bytes, words: str) -> None:
    assert judged(GOOD, bad, GOOD) == [None, words, None]
    assert judged(bad) == [words]


def test_what_single_runs_are_forgiven_runs_of_a_batch_are_forgiven_too() -> None:
    nulls, cut = b'{"jobId":7,"logId":1,"executorTimeout":null}', b'{"jobId":7,"logId":1,"executorParams":"\xe4\xbb"}'
    assert judged(nulls, GOOD, cut) == [None, None, None]
    found = decode_batch(b"[" + cut + b"]")[0]
    assert isinstance(found, TriggerRequest)
    assert found.executor_params == "\ufffd"


def test_order_and_length_stay() -> None:
    requests = [TriggerRequest(job_id=n % 3, log_id=n) for n in range(MOST_IN_BATCH)]
    assert decode_batch(encode_batch(requests)) == requests
    assert decode_batch(b"[]") == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "the body is not JSON"),
        (b"{}", "expected array, got object"),
        (GOOD, "expected array, got object"),
        (b"null", "expected array, got null"),
        (b"[" + GOOD, "the body is not JSON"),
        (b"[" + GOOD + b"] more", "the body is not JSON"),
        (b"[" * 200_000, "the body is nested too deeply"),
        (b"[" + b",".join([GOOD] * 1001) + b"]", "a batch has at most 1000 runs, and this one 1001"),
        # Looking at each of these would take minutes, and gigabytes.
        (b"[" + b"1," * 5_000_000 + b"1]", "a batch has at most 1000 runs, and this one 5000001"),
    ],
    ids=range(9),
)
def test_what_is_no_batch_is_refused_as_a_whole(body: bytes, words: str) -> None:
    with pytest.raises(MalformedMessageError, match=words):
        decode_batch(body)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "data: is missing"),
        ("text", "expected array, got str"),
        ({"0": {"code": 200}}, "expected array, got object"),
        ([], "data: expected 2 envelopes, got 0"),
        ([{"code": 200}], "data: expected 2 envelopes, got 1"),
        ([1, 2, 3], "data: expected 2 envelopes, got 3"),
    ],
)
def test_a_reply_that_does_not_answer_each_run_is_none(value: object, words: str) -> None:
    with pytest.raises(MalformedMessageError, match=words):
        decode_batch_reply(decode_envelope(json.dumps({"code": 200, "data": value}).encode()), 2)


def test_an_unreadable_envelope_stands_in_its_place() -> None:
    reply = decode_envelope(b'{"code":200,"content":[{"code":"x"},{"code":500,"msg":"no"},{"code":200,"more":[1]}]}')
    first, second, third = decode_batch_reply(reply, 3)
    assert isinstance(first, MalformedMessageError)
    assert (first.field, first.message) == ("code", "code: expected int, got str")
    assert not isinstance(second, MalformedMessageError)
    assert not isinstance(third, MalformedMessageError)
    assert (second.code, second.msg, third.ok) == (500, "no", True)
