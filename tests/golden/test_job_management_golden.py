"""Managing jobs over the wire, byte for byte as clients of dialect C write it."""

import json
from pathlib import Path

import pytest

from jobwheel.wire.codec import encode_envelope
from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.job_messages import FIELDS, decode_job_fields, decode_job_id, decode_trigger_job
from jobwheel.wire.messages import SUCCESS

GOLDEN = Path(__file__).parent / "c"


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def test_a_new_job() -> None:
    body = golden("add_job.json")
    assert decode_job_fields(body).given() == {
        "group_id": 3,
        "name": "settle accounts",
        "author": "ada",
        "alarm_email": "ops@example.com",
        "schedule_type": "CRON",
        "schedule_conf": "0 0 2 * * ?",
        "misfire_strategy": "DO_NOTHING",
        "route_strategy": "ROUND",
        "handler": "settleAccounts",
        "parameter": "day=2026-11-26",
        "block_strategy": "SERIAL_EXECUTION",
        "timeout_s": 30,
        "retry_count": 0,
        "glue_type": "BEAN",
        "glue_source": "",
        "glue_remark": "first version",
    }
    assert set(FIELDS.values()) == set(json.loads(body))


def test_the_new_jobs_id_is_a_text() -> None:
    assert json.loads(encode_envelope(SUCCESS, value="7")) == json.loads(golden("add_job_reply.json"))


def test_a_change_says_what_changes_alone() -> None:
    body = golden("update_job.json")
    assert decode_job_id(body) == 7
    assert decode_job_fields(body).given() == {"schedule_conf": "0 30 2 * * ?", "parameter": ""}


@pytest.mark.parametrize("body", [golden("job_id.json"), b'{"id": "7"}', b'{"id": " 7 ", "name": "x"}'])
def test_an_id_is_a_number_or_the_text_that_a_reply_gave(body: bytes) -> None:
    assert decode_job_id(body) == 7


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"id": null}',
        b'{"id": 0}',
        b'{"id": -7}',
        b'{"id": "seven"}',
        b'{"id": ""}',
        b'{"id": 1.5}',
        b'{"id": 2147483648}',
    ],
)
def test_another_id_is_named(body: bytes) -> None:
    with pytest.raises(MalformedMessageError) as refused:
        decode_job_id(body)
    assert refused.value.field == "id"


def test_a_trigger() -> None:
    wanted = decode_trigger_job(golden("trigger_job.json"))
    assert (wanted.job_id, wanted.parameter) == (7, None)
    assert wanted.addresses == ("http://10.0.0.7:9999/", "http://10.0.0.8:9999/")
    empty = decode_trigger_job(b'{"id": 7, "executorParam": "", "addressList": " "}')
    assert (empty.parameter, empty.addresses) == ("", ())


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"jobGroup": "three"}', "jobGroup"),
        (b'{"executorTimeout": 99999999999}', "executorTimeout"),
        (b'{"executorFailRetryCount": true}', "executorFailRetryCount"),
        (b'{"name": 7}', "name"),
    ],
)
def test_a_wrong_type_is_named(body: bytes, field: str) -> None:
    with pytest.raises(MalformedMessageError) as refused:
        decode_job_fields(body)
    assert refused.value.field == field
