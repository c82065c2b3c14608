import json
from typing import Any

import msgspec
import pytest

from jobwheel.wire.codec import decode, decode_envelope, encode, encode_envelope, envelope_value
from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.messages import Features, JobQuery, LogPage, Reason, RegistryRequest, TriggerRequest

DEEP = b"[" * 200_000


def test_a_trigger_request_needs_no_more_than_its_two_ids() -> None:
    request = decode(b'{"jobId": 7, "logId": 90071}', TriggerRequest)
    assert (request.job_id, request.log_id, request.executor_handler, request.executor_timeout) == (7, 90071, None, 0)
    assert request.resend is msgspec.UNSET


def test_null_and_absent_are_the_same_for_numbers_too() -> None:
    body = (
        b'{"jobId": 7, "logId": 1, "executorTimeout": null, "glueUpdatetime": null, "glueSource": null, "resend": null}'
    )
    assert decode(body, TriggerRequest) == TriggerRequest(job_id=7, log_id=1)


def test_extensions_of_ours_are_sent_only_when_set() -> None:
    sent = json.loads(encode(TriggerRequest(job_id=7, log_id=1, resend=True)))
    assert sent["resend"] is True
    assert not {"instance", "attempt", "parent", "scheduledTime", "triggerType"} & sent.keys()
    assert len(sent) == 13


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        (b'{"logId": 1}', "jobId", "jobId: is missing"),
        (b'{"jobId": null, "logId": 1}', "jobId", "jobId: is missing"),
        (b'{"jobId": "7", "logId": 1}', "jobId", "jobId: expected int, got str"),
        (b'{"jobId": 7.5, "logId": 1}', "jobId", "jobId: expected int, got float"),
        (b'{"jobId": true, "logId": 1}', "jobId", "jobId: expected int, got bool"),
        (b'{"jobId": 7, "logId": 9223372036854775808}', "logId", "logId: expected int <= 9223372036854775807"),
        (b'{"jobId": 7, "logId": 1, "executorTimeout": 2147483648}', "executorTimeout", "executorTimeout: expected"),
        (b'{"jobId": 7, "logId": 1, "executorParams": 5}', "executorParams", "executorParams: expected str | null"),
        (b'{"jobId": 7, "logId": 1, "parent": {"handleMsg": "x"}}', "parent.logId", "parent.logId: is missing"),
        (b'{"jobId": 7, "logId": 1, "parent": {"logId": []}}', "parent.logId", "parent.logId: expected int, got array"),
        (b"[]", None, "expected object, got array"),
        (b'"text"', None, "expected object, got str"),
        (b"null", None, "expected object, got null"),
        (b"7", None, "expected object, got int"),
        (b"", None, "the body is not JSON (Input data was truncated)"),
        (b"jobId=7", None, "the body is not JSON"),
        (b"<html>502</html>", None, "the body is not JSON"),
        (b'{"jobId": 7, "logId": 1', None, "the body is not JSON"),
        (b'{"jobId": "x", "logId": 1', None, "the body is not JSON"),
        (b'{"jobId": 7, "logId": 1} trailing', None, "the body is not JSON"),
        (b"\xff\xfe\x00", None, "the body is not JSON"),
        (DEEP, None, "expected object, got array"),
        (b'{"jobId": ' + DEEP, None, "the body is nested too deeply"),
        (b'{"jobId": "x", "more": ' + DEEP, None, "the body is nested too deeply"),
        (b'{"jobId": 7, "logId": 1, "more": ' + DEEP, None, "the body is nested too deeply"),
        (b'{"a":' * 200_000, None, "the body is nested too deeply"),
    ],
)
def test_what_is_no_message_is_refused_in_words_that_name_the_field(body: bytes, field: str | None, words: str) -> None:
    with pytest.raises(MalformedMessageError) as caught:
        decode(body, TriggerRequest)
    assert caught.value.message.startswith(words)
    assert caught.value.field == field
    assert caught.value.code == "malformed_message"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (rb"half an emoji \ud83d", "half an emoji \ufffd"),
        (rb"\ude00 the other half", "\ufffd the other half"),
        (rb"the wrong way round \ude00\ud83d", "the wrong way round \ufffd\ufffd"),
        (rb"two \ud83d\ud83d\ude00", "two \ufffd\U0001f600"),
        (rb"a whole one \ud83d\ude00 and \ud83d", "a whole one \U0001f600 and \ufffd"),
        (rb"no escape \\ud83d but \ud83d", "no escape \\ud83d but \ufffd"),
        (b"not UTF-8 \xc8\xce\xce\xf1", "not UTF-8 \ufffd\ufffd\ufffd\ufffd"),
        (b"cut \xe4\xbb", "cut \ufffd"),
        (b"raw\nnew\tline\x00\x1b", "raw\nnew\tline\x00\x1b"),
        (b'raw\nand \\"quoted\\" \\\\', 'raw\nand "quoted" \\'),
    ],
)
def test_text_that_was_cut_or_badly_escaped_is_mended(text: bytes, read: str) -> None:
    body = b'{"jobId": 7,\n\t"logId": 1, "executorParams": "%b"}' % text
    assert decode(body, TriggerRequest).executor_params == read


def test_nulls_and_cut_text_in_one_message_are_both_forgiven() -> None:
    for text in (rb"\ud83d", b"\xe4\xbb"):
        body = b'{"jobId": 7, "executorTimeout": null, "logId": 1, "executorParams": "cut %b"}' % text
        assert decode(body, TriggerRequest) == TriggerRequest(job_id=7, log_id=1, executor_params="cut \ufffd")


def test_mending_takes_a_time_that_grows_with_the_length_alone() -> None:
    # Quadratic in the number of quotes, this would take minutes.
    for body in (rb"\"" * 500_000, b'"' + rb"\"" * 500_000, b'"\n' * 500_000, b'{"' + b"\\" * 1_000_001):
        with pytest.raises(MalformedMessageError):
            decode(body, JobQuery)


@pytest.mark.parametrize("value", [None, "12", {"a": 1}, [1, "x"], 7, True, False, "", '任务 \U0001f600 \x00 \\ "'])
def test_an_envelope_carries_its_value_twice_and_gives_it_back(value: Any) -> None:
    body = encode_envelope(200, None, value)
    assert json.loads(body) == {"code": 200, "msg": None, "content": value, "data": value}
    envelope = decode_envelope(body)
    assert envelope.ok
    if value is not None:
        assert envelope_value(envelope, object) == value


def test_an_envelope_carries_instance_and_reason_only_when_they_are_given() -> None:
    plain = json.loads(encode_envelope(500, "no"))
    assert plain == {"code": 500, "msg": "no", "content": None, "data": None}
    ours = encode_envelope(500, "no", instance="7c3e", reason=Reason.STOPPING)
    assert json.loads(ours) == {**plain, "instance": "7c3e", "reason": "stopping"}
    envelope = decode_envelope(ours)
    assert (envelope.ok, envelope.instance, envelope.reason) == (False, "7c3e", "stopping")


def test_an_envelope_can_carry_any_message() -> None:
    assert decode_envelope(encode_envelope(500, "half \ud83d")).msg == "half \ufffd"


@pytest.mark.parametrize(
    "body",
    [
        b'{"code":200,"msg":null,"content":{"fromLineNum":1,"toLineNum":2,"logContent":"a\\nb","isEnd":true}}',
        b'{"code":200,"data":{"fromLineNum":1,"toLineNum":2,"logContent":"a\\nb","isEnd":true,"more":[1]}}',
        b'{"data":{"isEnd":true,"fromLineNum":1,"toLineNum":2,"logContent":"a\\nb"},"content":null,"code":200}',
    ],
)
def test_the_value_is_read_from_content_or_data(body: bytes) -> None:
    assert envelope_value(decode_envelope(body), LogPage) == LogPage(1, 2, "a\nb", True)


def test_a_value_that_is_not_there_or_of_another_shape_is_refused() -> None:
    with pytest.raises(MalformedMessageError, match="data: is missing"):
        envelope_value(decode_envelope(b'{"code":200,"content":null,"data":null}'), LogPage)
    with pytest.raises(MalformedMessageError, match="toLineNum: is missing"):
        envelope_value(decode_envelope(b'{"code":200,"data":{"fromLineNum":1}}'), LogPage)
    with pytest.raises(MalformedMessageError, match="expected object, got str"):
        envelope_value(decode_envelope(b'{"code":200,"data":"x"}'), LogPage)


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"code":"200"}', b'{"code":null}', b"<html>", b"", b"null", b"200"])
def test_what_is_no_envelope_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        decode_envelope(body)


def test_a_registration_of_others_has_no_features_and_one_of_ours_keeps_them() -> None:
    plain = RegistryRequest(registry_group="EXECUTOR", registry_key="billing", registry_value="http://10.0.0.7:9999/")
    assert "features" not in json.loads(encode(plain))
    ours = RegistryRequest(
        registry_group="EXECUTOR", registry_key="billing", registry_value="x", features=Features(instance="7c3e")
    )
    assert decode(encode(ours), RegistryRequest) == ours
