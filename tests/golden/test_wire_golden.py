"""What goes over the wire, byte for byte as JSON: the files beside this one are the protocol as others speak it."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from jobwheel.wire.batch import decode_batch, decode_batch_reply, encode_batch, encode_batch_reply
from jobwheel.wire.codec import decode, decode_envelope, encode, encode_envelope, envelope_value
from jobwheel.wire.dialects import (
    RUN_PATH,
    decode_callbacks,
    decode_log_query,
    encode_callbacks,
    encode_callbacks_for_a_and_b,
    encode_log_query,
)
from jobwheel.wire.messages import (
    AdminFeatures,
    Dialect,
    Features,
    JobQuery,
    KillRequest,
    LogPage,
    LogQuery,
    Parent,
    Progress,
    Reason,
    RegistryReply,
    RegistryRequest,
    Result,
    RunStatus,
    StatusQuery,
    TriggerRequest,
)

GOLDEN = Path(__file__).parent
INSTANCE = "7c3e6f52-0c5e-4b0a-9a53-0f2f4f6f8a11"
TEXT = 'line one\nline "two" \\ 任务 \U0001f600'
TRIGGER = TriggerRequest(
    job_id=7,
    executor_handler="settleAccounts",
    executor_params="day=2026-11-26",
    executor_block_strategy="SERIAL_EXECUTION",
    executor_timeout=0,
    log_id=90071,
    log_date_time=1795651200000,
    glue_type="BEAN",
    glue_source="",
    glue_updatetime=1795000000000,
    broadcast_index=0,
    broadcast_total=1,
)
RESEND = replace(
    TRIGGER,
    scheduled_time=1795651200000,
    trigger_type="CRON",
    attempt=2,
    resend=True,
    instance=INSTANCE,
    parent=Parent(90001, "done"),
)
REGISTRY = RegistryRequest(
    registry_group="EXECUTOR", registry_key="billing", registry_value="http://10.0.0.7:9999/"
)  # fmt: skip
RESULTS = [Result(90071, 1795651200000, 200, None), Result(90072, 1795651201000, 500, TEXT)]
LOG_QUERY = LogQuery(90071, 1795651200000, 42)
LOG_PAGE = LogPage(from_line=42, to_line=43, content=TEXT, is_end=False)
SAMPLE_PAGE = LogPage(from_line=1, to_line=2, content="a\nb", is_end=True)
FEATURES = Features(instance=INSTANCE, version="1.0.0", batch=True, kill_by_log=True, status=True, running=3)

every_dialect = pytest.mark.parametrize("dialect", list(Dialect))


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def of(dialect: Dialect, name: str) -> bytes:
    return golden(f"{dialect.value.lower()}/{name}")


def same(sent: bytes, expected: bytes) -> bool:
    """Equal as JSON: the order of fields does not matter, a field too many or too few does."""
    left: Any = json.loads(sent)
    right: Any = json.loads(expected)
    return bool(left == right)


def test_a_run_goes_to_the_path_of_the_dialect() -> None:
    assert RUN_PATH == {Dialect.A: "/run", Dialect.B: "/run", Dialect.C: "/trigger"}


@every_dialect
def test_trigger(dialect: Dialect) -> None:
    assert same(encode(TRIGGER), of(dialect, "trigger.json"))
    assert decode(of(dialect, "trigger.json"), TriggerRequest) == TRIGGER


@every_dialect
def test_callback(dialect: Dialect) -> None:
    assert same(encode_callbacks(RESULTS, dialect), of(dialect, "callback.json"))
    batch = decode_callbacks(of(dialect, "callback.json"))
    assert (batch.results, batch.rejected) == (RESULTS, [])


def test_a_callback_for_a_and_b_is_that_of_a_and_that_of_b_in_one() -> None:
    both = [json.loads(of(dialect, "callback.json")) for dialect in (Dialect.A, Dialect.B)]
    merged = [{**older, **newer} for older, newer in zip(*both, strict=True)]
    assert same(encode_callbacks_for_a_and_b(RESULTS), json.dumps(merged).encode())


@every_dialect
def test_log_request(dialect: Dialect) -> None:
    assert same(encode_log_query(LOG_QUERY, dialect), of(dialect, "log_request.json"))
    assert decode_log_query(of(dialect, "log_request.json")) == LOG_QUERY


@every_dialect
def test_log_reply(dialect: Dialect) -> None:
    assert same(encode_envelope(200, None, LOG_PAGE), of(dialect, "log_reply.json"))
    assert envelope_value(decode_envelope(of(dialect, "log_reply.json")), LogPage) == LOG_PAGE


@every_dialect
def test_registry(dialect: Dialect) -> None:
    assert same(encode(REGISTRY), of(dialect, "registry.json"))
    assert decode(of(dialect, "registry.json"), RegistryRequest) == REGISTRY


@every_dialect
@pytest.mark.parametrize("name", ["idle_beat.json", "kill.json"])
def test_idle_beat_and_kill(dialect: Dialect, name: str) -> None:
    assert same(encode(JobQuery(7)), of(dialect, name))
    assert decode(of(dialect, name), JobQuery) == JobQuery(7)


@every_dialect
def test_envelopes(dialect: Dialect) -> None:
    assert same(encode_envelope(200), of(dialect, "envelope_success.json"))
    refusal = "job handler [settleAccounts] is unknown here"
    assert same(encode_envelope(500, refusal), of(dialect, "envelope_failure.json"))
    assert decode_envelope(of(dialect, "envelope_success.json")).ok
    assert decode_envelope(of(dialect, "envelope_failure.json")).msg == refusal


def test_extensions_of_ours() -> None:
    assert same(encode(RESEND), golden("ours/trigger_resend.json"))
    assert decode(golden("ours/trigger_resend.json"), TriggerRequest) == RESEND
    registry = RegistryRequest(
        registry_group="EXECUTOR",
        registry_key="billing",
        registry_value="http://10.0.0.7:9999/",
        features=FEATURES,
    )
    assert same(encode(registry), golden("ours/registry.json"))
    assert decode(golden("ours/registry.json"), RegistryRequest) == registry
    refusal = encode_envelope(500, "shutting down", instance=INSTANCE, reason=Reason.STOPPING)
    assert same(refusal, golden("ours/envelope_refusal.json"))
    envelope = decode_envelope(golden("ours/envelope_refusal.json"))
    assert (envelope.code, envelope.instance, envelope.reason) == (500, INSTANCE, "stopping")


def test_what_ends_runs_and_asks_for_them() -> None:
    assert decode(golden("ours/kill_by_log.json"), KillRequest) == KillRequest(7, 90071)
    assert same(encode(KillRequest(7, 90071)), golden("ours/kill_by_log.json"))
    assert same(encode(KillRequest(7)), b'{"jobId": 7}')
    assert decode(b'{"jobId": 7, "logId": null}', KillRequest) == KillRequest(7)
    assert decode(golden("ours/run_status.json"), StatusQuery) == StatusQuery([90071, 90072])
    states = {90071: RunStatus.RUNNING, 90072: RunStatus.UNKNOWN}
    assert same(encode_envelope(200, value=states, instance=INSTANCE), golden("ours/run_status_reply.json"))
    assert envelope_value(decode_envelope(golden("ours/run_status_reply.json")), dict[int, RunStatus]) == states


def test_what_an_admin_of_ours_wishes_and_gets() -> None:
    wishes = RegistryReply(AdminFeatures(progress=True, drain=False))
    assert same(encode_envelope(200, value=wishes), golden("ours/registry_reply.json"))
    assert envelope_value(decode_envelope(golden("ours/registry_reply.json")), RegistryReply) == wishes
    assert same(encode([Progress(90071, 0.4, "four of ten")]), golden("ours/progress.json"))
    assert decode(golden("ours/progress.json"), list[Progress]) == [Progress(90071, 0.4, "four of ten")]


def test_a_batch_and_its_reply() -> None:
    first = replace(TRIGGER, scheduled_time=1795651200000, trigger_type="CRON", attempt=1)
    assert same(encode_batch([first, RESEND]), golden("ours/batch_request.json"))
    assert decode_batch(golden("ours/batch_request.json")) == [first, RESEND]
    known = "run 90072 is known here already"
    envelopes = [
        encode_envelope(200, instance=INSTANCE),
        encode_envelope(500, known, instance=INSTANCE, reason=Reason.REPEATED),
        encode_envelope(500, "logId: is missing", instance=INSTANCE),
    ]
    assert same(encode_batch_reply(envelopes, instance=INSTANCE), golden("ours/batch_reply.json"))
    reply = decode_envelope(golden("ours/batch_reply.json"))
    assert reply.ok
    assert decode_batch_reply(reply, 3) == [decode_envelope(envelope) for envelope in envelopes]


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("callback_2_2_nulls.json", Result(90071, 0, 200, None)),
        ("callback_2_4_nulls.json", Result(90071, 1795651200000, 200, None)),
        ("callback_3_5_unknown_fields.json", Result(90071, 1795651200000, 502, "too slow")),
        ("callback_without_date.json", Result(90071, 0, 200, None)),
    ],
)
def test_callbacks_as_other_executors_write_them(name: str, result: Result) -> None:
    batch = decode_callbacks(golden(f"peers/{name}"))
    assert (batch.results, batch.rejected) == ([result], [])


@pytest.mark.parametrize(
    "name", ["envelope_content_only.json", "envelope_data_only.json", "envelope_content_null_data_set.json"]
)
def test_log_replies_as_other_executors_write_them(name: str) -> None:
    envelope = decode_envelope(golden(f"peers/{name}"))
    assert envelope.ok
    assert envelope_value(envelope, LogPage) == SAMPLE_PAGE


def test_triggers_as_other_admins_write_them() -> None:
    bare = decode(golden("peers/trigger_nulls.json"), TriggerRequest)
    assert bare == TriggerRequest(job_id=7, log_id=90071)
    old = decode(golden("peers/trigger_2_2_without_blocking.json"), TriggerRequest)
    assert (old.executor_block_strategy, old.executor_timeout, old.log_date_time) == (None, 0, 1795651200000)
    assert decode(golden("peers/trigger_unknown_fields.json"), TriggerRequest) == TRIGGER


def test_other_requests_as_others_write_them() -> None:
    assert decode(golden("peers/registry_unknown_fields.json"), RegistryRequest) == REGISTRY
    assert decode_log_query(golden("peers/log_request_nulls.json")) == LogQuery(90071, 1795651200000, 1)
    assert decode_log_query(golden("peers/log_request_both_dates.json")) == LOG_QUERY


def test_every_file_is_used() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in GOLDEN.glob("test_*.py"))
    unused = [path.name for path in GOLDEN.rglob("*.json") if path.name not in source]
    assert unused == []
