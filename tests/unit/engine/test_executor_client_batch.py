"""Many runs in one request: what became of each."""

import asyncio
import json
import secrets

import pytest

from jobwheel.admin.engine.executor_answers import Answer, AnswerKind
from jobwheel.admin.engine.executor_client import ExecutorClient
from jobwheel.admin.engine.requests import trigger_request
from jobwheel.kernel.secret import Secret
from jobwheel.wire.batch import MOST_IN_BATCH
from jobwheel.wire.client import WireClient
from jobwheel.wire.codec import encode, encode_envelope
from jobwheel.wire.messages import MAX_BODY_BYTES, Reason, TriggerRequest
from tests.support.engine_parts import dispatch_job, pending_run
from tests.support.http_peer import Behaviour, HttpPeer, after, never, raw, reply, reset, unused_port

INSTANCE = "7f0c6a52-0000-4000-8000-000000000001"
REQUESTS = [trigger_request(pending_run(90_071 + n), dispatch_job(), INSTANCE) for n in range(3)]
UNKNOWN = reply(b'{"code":500,"msg":"invalid request, uri-mapping(/runBatch) not found.","content":null}')
UNCONFIRMED, UNREACHABLE = AnswerKind.UNCONFIRMED, AnswerKind.UNREACHABLE
ACCEPTED, REJECTED, STOPPING = AnswerKind.ACCEPTED, AnswerKind.REJECTED, AnswerKind.STOPPING


def client_of(wire: WireClient, timeout_s: float = 3.0) -> ExecutorClient:
    return ExecutorClient(wire, Secret(secrets.token_urlsafe(16)), timeout_s)


def batch_reply(*items: object, code: int = 200, field: str = "data") -> Behaviour:
    return reply(json.dumps({"code": code, field: items}).encode())


async def answers_to(wire: WireClient, peer: HttpPeer, *script: Behaviour) -> list[Answer]:
    peer.script[:] = script
    return await client_of(wire).run_batch(peer.root, "orders", REQUESTS)


def kinds(answers: list[Answer]) -> list[AnswerKind]:
    return [answer.kind for answer in answers]


def paths(peer: HttpPeer) -> list[str]:
    return [request.request_line.split()[1] for request in peer.requests]


@pytest.mark.parametrize("field", ["data", "content"])
async def test_each_run_has_its_own_answer(wire: WireClient, peer: HttpPeer, field: str) -> None:
    items = [
        {"code": 200, "instance": INSTANCE},
        {"code": 500, "msg": "the queue is full", "reason": "full"},
        {"code": 500, "reason": "stopping"},
    ]
    answers = await answers_to(wire, peer, batch_reply(*items, field=field))
    assert answers == [
        Answer(ACCEPTED, 200, "", INSTANCE),
        Answer(REJECTED, 500, "the queue is full", None, Reason.FULL),
        Answer(STOPPING, 500, "", None, Reason.STOPPING),
    ]
    assert answers[1].discarded


async def test_all_runs_go_in_one_request_in_their_order(wire: WireClient, peer: HttpPeer) -> None:
    token = secrets.token_urlsafe(16)
    await ExecutorClient(wire, Secret(token), 3.0).run_batch(peer.root.rstrip("/"), "orders", REQUESTS)
    (request,) = peer.requests
    assert request.request_line == "POST /runBatch HTTP/1.1"
    assert request.headers["xxl-job-access-token"] == token
    assert request.headers["xxl-job-appname"] == "orders"
    assert json.loads(request.body) == [json.loads(encode(each)) for each in REQUESTS]


@pytest.mark.parametrize(
    "behaviour",
    [
        batch_reply({"code": 200}, {"code": 200}),
        batch_reply(*[{"code": 200}] * 4),
        batch_reply(),
        reply(b'{"code":200}'),
        reply(b'{"code":200,"data":null}'),
        reply(b'{"code":200,"data":{"0":{"code":200}}}'),
        reply(b'{"code":200,"data":"abc"}'),
        reply(b'[{"code":200},{"code":200},{"code":200}]'),
        reply(b'{"code":200,"data":[{"code":200},{"code":200},{"co'),
        reply(b""),
        reply(b"<html>OK</html>"),
        reply(b"Bad Gateway", status=502),
        reply(b'{"code":200,"data":[{"code":200},{"code":200},{"code":200}]}', status=504),
        reset,
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", close=True),
    ],
)
async def test_an_answer_that_tells_nothing_of_each_leaves_all_unconfirmed(
    wire: WireClient, peer: HttpPeer, behaviour: Behaviour
) -> None:
    answers = await answers_to(wire, peer, behaviour)
    assert [(answer.kind, answer.code) for answer in answers] == [(UNCONFIRMED, 500)] * 3
    assert len(peer.requests) == 1


@pytest.mark.parametrize("bad", [None, 200, "ok", [], {}, {"code": "200"}, {"code": 2**31}, {"msg": "no code"}])
async def test_an_envelope_that_cannot_be_read_leaves_its_run_alone_unconfirmed(
    wire: WireClient, peer: HttpPeer, bad: object
) -> None:
    answers = await answers_to(wire, peer, batch_reply({"code": 200}, bad, {"code": 500, "msg": "no"}))
    assert kinds(answers) == [ACCEPTED, UNCONFIRMED, REJECTED]


async def test_silence_leaves_all_unconfirmed_and_nothing_is_sent_twice(wire: WireClient, peer: HttpPeer) -> None:
    peer.script[:] = [never]
    answers = await client_of(wire, 0.1).run_batch(peer.root, "orders", REQUESTS)
    assert kinds(answers) == [UNCONFIRMED] * 3
    assert len(peer.requests) == 1


async def test_nobody_there_is_unreachable_for_all(wire: WireClient) -> None:
    for address in (f"http://127.0.0.1:{unused_port()}/", "not a url"):
        assert kinds(await client_of(wire).run_batch(address, "orders", REQUESTS)) == [UNREACHABLE] * 3


@pytest.mark.parametrize(
    ("envelope", "kind"),
    [
        (encode_envelope(500, "The access token is wrong."), REJECTED),
        (encode_envelope(500, "this executor is stopped", reason=Reason.STOPPING), STOPPING),
    ],
)
async def test_a_refusal_of_the_whole_is_one_of_each(
    wire: WireClient, peer: HttpPeer, envelope: bytes, kind: AnswerKind
) -> None:
    assert kinds(await answers_to(wire, peer, reply(envelope))) == [kind] * 3


@pytest.mark.parametrize("unknown", [UNKNOWN, reply(b"nothing here", 404), reply(b'{"detail":"x"}', 405)])
async def test_who_knows_no_batches_gets_the_runs_one_by_one(
    wire: WireClient, peer: HttpPeer, unknown: Behaviour
) -> None:
    answers = await answers_to(wire, peer, unknown)
    assert kinds(answers) == [ACCEPTED] * 3
    assert paths(peer) == ["/runBatch", "/run", "/run", "/run"]
    assert sorted(json.loads(request.body)["logId"] for request in peer.requests[1:]) == [90_071, 90_072, 90_073]


async def test_a_run_whose_refusal_quotes_the_protocol_is_not_sent_again(wire: WireClient, peer: HttpPeer) -> None:
    refused = {"code": 500, "msg": "job handler 'uri-mapping(/runBatch) not found' is unknown"}
    assert kinds(await answers_to(wire, peer, batch_reply({"code": 200}, refused, refused))) == [
        ACCEPTED,
        REJECTED,
        REJECTED,
    ]
    assert len(peer.requests) == 1


async def test_one_by_one_nothing_is_begun_after_the_time_out(wire: WireClient, peer: HttpPeer) -> None:
    requests = [trigger_request(pending_run(n), dispatch_job(), INSTANCE) for n in range(1, 41)]
    peer.script[:] = [UNKNOWN]
    peer.otherwise = never
    answers = await client_of(wire, 0.2).run_batch(peer.root, "orders", requests)
    assert kinds(answers) == [UNCONFIRMED] * 32 + [UNREACHABLE] * 8
    assert len(peer.requests) == 33


async def test_one_by_one_only_some_are_under_way_at_once(wire: WireClient, peer: HttpPeer) -> None:
    requests = [trigger_request(pending_run(n), dispatch_job(), INSTANCE) for n in range(1, 41)]
    go = asyncio.Event()
    peer.script[:] = [UNKNOWN]
    peer.otherwise = after(go, reply())
    sending = asyncio.create_task(client_of(wire).run_batch(peer.root, "orders", requests))
    await peer.wait_requests(33)
    go.set()
    assert kinds(await sending) == [ACCEPTED] * 40
    assert len(peer.writers) <= 33


def large(log_id: int) -> TriggerRequest:
    return TriggerRequest(job_id=1, log_id=log_id, glue_source="x" * (MAX_BODY_BYTES // 3))


@pytest.mark.parametrize(
    "requests",
    [[large(n) for n in range(4)], [TriggerRequest(job_id=1, log_id=n) for n in range(MOST_IN_BATCH + 2)]],
    ids=["bytes", "number"],
)
async def test_what_is_too_large_for_one_request_goes_in_several(
    wire: WireClient, peer: HttpPeer, requests: list[TriggerRequest]
) -> None:
    first, second = requests[: len(requests) // 2], requests[len(requests) // 2 :]
    peer.script[:] = [batch_reply(*[{"code": 200}] * len(part)) for part in (first, second)]
    answers = await client_of(wire).run_batch(peer.root, "orders", requests)
    assert kinds(answers) == [ACCEPTED] * len(requests)
    sent = [[each["logId"] for each in json.loads(request.body)] for request in peer.requests]
    assert sorted(sent) == [[each.log_id for each in part] for part in (first, second)]
    assert all(len(request.body) <= MAX_BODY_BYTES for request in peer.requests)


async def test_no_runs_are_no_request(wire: WireClient, peer: HttpPeer) -> None:
    assert await client_of(wire).run_batch(peer.root, "orders", []) == []
    assert peer.requests == []
