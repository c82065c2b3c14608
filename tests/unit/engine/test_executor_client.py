import json
import secrets

import pytest

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.executor_answers import Answer, AnswerKind
from jobwheel.admin.engine.executor_client import ExecutorClient, Statuses
from jobwheel.admin.engine.requests import trigger_request
from jobwheel.kernel.secret import Secret
from jobwheel.wire.client import WireClient
from jobwheel.wire.errors import MalformedMessageError, UncertainError, UnreachableError
from jobwheel.wire.messages import JobQuery, KillRequest, LogQuery, RunStatus
from tests.support.engine_parts import NOW_MS, SECOND_MS, dispatch_job, pending_run
from tests.support.http_peer import Behaviour, HttpPeer, never, raw, reply, reset, unused_port

INSTANCE = "7f0c6a52-0000-4000-8000-000000000001"
REQUEST = trigger_request(pending_run(90_071), dispatch_job(), None)
UNKNOWN_RUN = reply(b'{"code":500,"msg":"invalid request, uri-mapping(/run) not found.","content":null}')
UNKNOWN_TRIGGER = reply(b'{"code":500,"msg":"invalid request, uri-mapping(/trigger) not found."}')


def client_of(wire: WireClient, timeout_s: float = 3.0) -> ExecutorClient:
    return ExecutorClient(wire, Secret(secrets.token_urlsafe(16)), timeout_s)


async def answer_to(wire: WireClient, peer: HttpPeer, *script: Behaviour, timeout_s: float = 3.0) -> Answer:
    peer.script[:] = script
    return await client_of(wire, timeout_s).run(peer.root, "orders", REQUEST)


def envelope(**fields: object) -> Behaviour:
    return reply(json.dumps(fields).encode())


def refusal(run_id: int, code: int) -> Behaviour:
    """A callback in the place of an envelope, as executors in Go answer a run that they do not take."""
    result = {"logId": run_id, "logDateTim": NOW_MS, "executeResult": {"code": code, "msg": "Task not registred"}}
    return reply(json.dumps([result]).encode())


@pytest.mark.parametrize(
    ("behaviour", "kind", "code"),
    [
        (envelope(code=200), AnswerKind.ACCEPTED, 200),
        (envelope(code=200, msg=None, content=None, instance=INSTANCE), AnswerKind.ACCEPTED, 200),
        (envelope(code=500, reason="repeated"), AnswerKind.ACCEPTED, 500),
        (reply(b'{"code":200}', status=500), AnswerKind.ACCEPTED, 200),
        (envelope(code=500, reason="stopping"), AnswerKind.STOPPING, 500),
        (envelope(code=500, msg="job handler [x] not found."), AnswerKind.REJECTED, 500),
        (envelope(code=501), AnswerKind.REJECTED, 501),
        (envelope(code=0), AnswerKind.REJECTED, 0),
        (envelope(code=500, reason="unknown_handler"), AnswerKind.REJECTED, 500),
        (envelope(code=500, reason="a reason of a later version"), AnswerKind.REJECTED, 500),
        (refusal(90_071, 500), AnswerKind.REJECTED, 500),
        (refusal(90_071, 501), AnswerKind.REJECTED, 501),
        (refusal(90_071, 200), AnswerKind.ACCEPTED, 200),
        (refusal(90_072, 500), AnswerKind.UNCONFIRMED, 500),
        (reply(b"[]"), AnswerKind.UNCONFIRMED, 500),
        (reply(b""), AnswerKind.UNCONFIRMED, 500),
        (reply(b"<html>OK</html>"), AnswerKind.UNCONFIRMED, 500),
        (reply(b'{"status":"ok"}'), AnswerKind.UNCONFIRMED, 500),
        (reply(b'[{"code":200}]'), AnswerKind.UNCONFIRMED, 500),
        (reply(b'{"code":"200"}'), AnswerKind.UNCONFIRMED, 500),
        (reply(b"Bad Gateway", status=502), AnswerKind.UNCONFIRMED, 500),
        (reply(b'{"code":502,"msg":"upstream"}', status=502), AnswerKind.UNCONFIRMED, 500),
        (reply(b'{"code":503,"msg":"no upstream"}', status=503), AnswerKind.UNCONFIRMED, 500),
        (reply(b'{"code":504}', status=504), AnswerKind.UNCONFIRMED, 500),
        (reply(b"", status=302, headers="Location: /elsewhere\r\n"), AnswerKind.UNCONFIRMED, 500),
        (reset, AnswerKind.UNCONFIRMED, 500),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", close=True), AnswerKind.UNCONFIRMED, 500),
        (raw(b"nonsense\r\n\r\n", close=True), AnswerKind.UNCONFIRMED, 500),
    ],
)
async def test_what_an_answer_means(
    wire: WireClient, peer: HttpPeer, behaviour: Behaviour, kind: AnswerKind, code: int
) -> None:
    answer = await answer_to(wire, peer, behaviour)
    assert (answer.kind, answer.code) == (kind, code)
    assert len(peer.requests) == 1


async def test_silence_is_unconfirmed_and_never_sent_twice(wire: WireClient, peer: HttpPeer) -> None:
    answer = await answer_to(wire, peer, never, timeout_s=0.1)
    assert (answer.kind, answer.code) == (AnswerKind.UNCONFIRMED, 500)
    assert len(peer.requests) == 1


@pytest.mark.parametrize("address", ["", "http://", "not a url", "http://127.0.0.1:0/", "ftp://127.0.0.1/"])
async def test_an_address_that_cannot_be_one_is_unreachable(wire: WireClient, address: str) -> None:
    assert (await client_of(wire).run(address, "orders", REQUEST)).kind is AnswerKind.UNREACHABLE


async def test_a_refused_connection_is_unreachable(wire: WireClient) -> None:
    answer = await client_of(wire).run(f"http://127.0.0.1:{unused_port()}/", "orders", REQUEST)
    assert (answer.kind, answer.code) == (AnswerKind.UNREACHABLE, 500)


@pytest.mark.parametrize(
    ("fields", "discarded"),
    [
        ({"msg": "block strategy effect\uff1aDiscard Later"}, True),
        ({"msg": "block strategy effect: Discard Later"}, True),
        ({"msg": "block strategy effect\uff1aCover Early"}, False),
        ({"msg": "Discard Later"}, False),
        ({"reason": "blocked"}, True),
        ({"reason": "full"}, True),
        ({"reason": "unknown_handler", "msg": "block strategy effect\uff1aDiscard Later"}, False),
    ],
)
async def test_what_is_discarded(wire: WireClient, peer: HttpPeer, fields: dict[str, str], discarded: bool) -> None:
    answer = await answer_to(wire, peer, envelope(code=500, **fields))
    assert (answer.kind, answer.discarded) == (AnswerKind.REJECTED, discarded)


def paths(peer: HttpPeer) -> list[str]:
    return [request.request_line.split()[1] for request in peer.requests]


@pytest.mark.parametrize("unknown", [UNKNOWN_RUN, reply(b"nothing here", 404), reply(b'{"detail":"x"}', 405)])
async def test_a_newer_executor_is_learnt_and_remembered(wire: WireClient, peer: HttpPeer, unknown: Behaviour) -> None:
    client = client_of(wire)
    peer.script[:] = [unknown]
    for _ in range(2):
        assert (await client.run(peer.root, "orders", REQUEST)).kind is AnswerKind.ACCEPTED
    assert paths(peer) == ["/run", "/trigger", "/trigger"]


async def test_an_older_executor_at_the_address_of_a_newer_one_is_learnt_as_well(
    wire: WireClient, peer: HttpPeer
) -> None:
    client = client_of(wire)
    peer.script[:] = [UNKNOWN_RUN, reply(), UNKNOWN_TRIGGER]
    for _ in range(3):
        assert (await client.run(peer.root, "orders", REQUEST)).kind is AnswerKind.ACCEPTED
    assert paths(peer) == ["/run", "/trigger", "/trigger", "/run", "/run"]


async def test_an_address_that_registered_as_newer_is_not_tried(wire: WireClient, peer: HttpPeer) -> None:
    client = client_of(wire)
    newer = {peer.root}
    client.use_registrations(newer.__contains__)
    peer.script[:] = [reply(), envelope(code=200, data=LOG_PAGE)]
    assert (await client.run(peer.root, "orders", REQUEST)).kind is AnswerKind.ACCEPTED
    await client.read_log(peer.root, "orders", LogQuery(9, SECOND_MS, 1))
    assert paths(peer) == ["/trigger", "/log"]
    assert b'"logDateTime"' in peer.requests[1].body


async def test_what_an_address_answers_goes_before_how_it_registered(wire: WireClient, peer: HttpPeer) -> None:
    client = client_of(wire)
    client.use_registrations(lambda _: True)
    peer.script[:] = [UNKNOWN_TRIGGER]
    for _ in range(2):
        assert (await client.run(peer.root, "orders", REQUEST)).kind is AnswerKind.ACCEPTED
    assert paths(peer) == ["/trigger", "/run", "/run"]


async def test_who_knows_neither_path_rejects_and_is_asked_anew(wire: WireClient, peer: HttpPeer) -> None:
    for unknown in ((UNKNOWN_RUN, UNKNOWN_TRIGGER), (reply(b"?", 404), reply(b"?", 404))):
        answer = await answer_to(wire, peer, *unknown)
        assert (answer.kind, answer.code) == (AnswerKind.REJECTED, 500)
    assert paths(peer) == ["/run", "/trigger"] * 2


async def test_no_answer_to_the_second_path_is_unconfirmed(wire: WireClient, peer: HttpPeer) -> None:
    assert (await answer_to(wire, peer, UNKNOWN_RUN, reset)).kind is AnswerKind.UNCONFIRMED


async def test_the_request_carries_credentials_and_all_fields(wire: WireClient, peer: HttpPeer) -> None:
    token = secrets.token_urlsafe(16)
    await ExecutorClient(wire, Secret(token), 3.0).run(peer.root.rstrip("/"), "orders", REQUEST)
    request = peer.requests[0]
    assert request.request_line == "POST /run HTTP/1.1"
    assert request.headers["xxl-job-access-token"] == token
    assert request.headers["xxl-job-appname"] == "orders"
    assert json.loads(request.body) == {
        "jobId": 1,
        "logId": 90_071,
        "executorHandler": "settle",
        "executorParams": "day=1",
        "executorBlockStrategy": "SERIAL_EXECUTION",
        "executorTimeout": 0,
        "logDateTime": SECOND_MS,
        "glueType": "BEAN",
        "glueSource": "",
        "glueUpdatetime": 0,
        "broadcastIndex": 0,
        "broadcastTotal": 1,
    }


async def test_an_executor_of_ours_is_told_more(wire: WireClient, peer: HttpPeer) -> None:
    request = trigger_request(pending_run(5, NOW_MS), dispatch_job(), INSTANCE)
    await client_of(wire).run(peer.root, "orders", request)
    body = json.loads(peer.requests[0].body)
    assert (body["scheduledTime"], body["triggerType"], body["attempt"]) == (NOW_MS, "CRON", 1)
    assert "resend" not in body


@pytest.mark.parametrize(
    ("behaviour", "kind", "idle"),
    [
        (envelope(code=200), AnswerKind.ACCEPTED, True),
        (envelope(code=500, msg="busy"), AnswerKind.REJECTED, False),
        (envelope(code=500, reason="stopping"), AnswerKind.STOPPING, False),
        (envelope(code=500, msg="invalid request, uri-mapping(/idleBeat) not found."), AnswerKind.UNCONFIRMED, None),
        (reply(b'{"code":404}', status=404), AnswerKind.UNCONFIRMED, None),
        (reply(b'{"code":500,"msg":"no upstream"}', status=503), AnswerKind.UNCONFIRMED, None),
        (reset, AnswerKind.UNCONFIRMED, None),
        (reply(b"<html>"), AnswerKind.UNCONFIRMED, None),
        (envelope(code=500, msg="The access token is wrong."), AnswerKind.REJECTED, None),
    ],
)
async def test_whether_a_job_is_idle(
    wire: WireClient, peer: HttpPeer, behaviour: Behaviour, kind: AnswerKind, idle: bool | None
) -> None:
    peer.script[:] = [behaviour, behaviour]
    assert (await client_of(wire).idle_beat(peer.root, "orders", JobQuery(JobId(7)))).kind is kind
    assert await client_of(wire).is_idle(peer.root, "orders", JobQuery(JobId(7))) is idle
    assert [json.loads(asked.body) for asked in peer.requests] == [{"jobId": 7}] * 2
    assert {asked.request_line for asked in peer.requests} == {"POST /idleBeat HTTP/1.1"}


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (envelope(code=200), AnswerKind.ACCEPTED),
        (envelope(code=500, msg="The access token is wrong."), AnswerKind.REJECTED),
        (reply(b"", status=404), AnswerKind.UNCONFIRMED),
        (never, AnswerKind.UNCONFIRMED),
    ],
)
async def test_whether_an_executor_is_alive(
    wire: WireClient, peer: HttpPeer, behaviour: Behaviour, kind: AnswerKind
) -> None:
    peer.script[:] = [behaviour]
    assert (await client_of(wire, timeout_s=0.2).beat(peer.root, "orders")).kind is kind
    assert [(asked.request_line, asked.body) for asked in peer.requests] == [("POST /beat HTTP/1.1", b"")]


async def test_nobody_there_is_neither_idle_nor_alive(wire: WireClient) -> None:
    address, client = f"http://127.0.0.1:{unused_port()}", client_of(wire)
    assert await client.is_idle(address, "orders", JobQuery(JobId(7))) is None
    assert (await client.idle_beat(address, "orders", JobQuery(JobId(7)))).kind is AnswerKind.UNREACHABLE
    assert (await client.beat(address, "orders")).kind is AnswerKind.UNREACHABLE


@pytest.mark.parametrize(
    ("behaviour", "known"),
    [
        (envelope(code=200, data={"7": "running", "8": "unknown"}, instance=INSTANCE), True),
        (envelope(code=200, content={"7": "running", "8": "unknown"}, instance=INSTANCE), True),
        (envelope(code=200, data={"7": "asleep"}), False),
        (envelope(code=200), False),
        (envelope(code=500, msg="invalid request, uri-mapping(/runStatus) not found."), False),
        (reply(b'{"code":200,"data":{"7":"unknown"}}', status=503), False),
        (reset, False),
    ],
)
async def test_where_runs_are(wire: WireClient, peer: HttpPeer, behaviour: Behaviour, known: bool) -> None:
    peer.script[:] = [behaviour]
    states = Statuses(INSTANCE, {7: RunStatus.RUNNING, 8: RunStatus.UNKNOWN})
    assert await client_of(wire).statuses(peer.root, "orders", [7, 8]) == (states if known else None)
    assert (peer.requests[0].request_line, peer.requests[0].body) == (
        "POST /runStatus HTTP/1.1",
        b'{"logIds":[7,8]}',
    )


async def test_an_executor_is_told_to_end_a_run_or_all_of_a_job(wire: WireClient, peer: HttpPeer) -> None:
    client = client_of(wire)
    assert (await client.kill(peer.root, "orders", KillRequest(7, 90_071))).kind is AnswerKind.ACCEPTED
    assert (await client.kill(peer.root, "orders", KillRequest(7))).kind is AnswerKind.ACCEPTED
    assert [json.loads(asked.body) for asked in peer.requests] == [{"jobId": 7, "logId": 90_071}, {"jobId": 7}]
    assert {asked.request_line for asked in peer.requests} == {"POST /kill HTTP/1.1"}


async def test_who_chooses_the_token_is_told_the_address_and_its_app_name(wire: WireClient, peer: HttpPeer) -> None:
    installation, own = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
    client = ExecutorClient(wire, Secret(installation), 3.0)
    choices = iter([Secret(own), None])
    asked = []

    def choose(app_name: str, address: str, token: Secret | None) -> Secret | None:
        asked.append((app_name, address, token))
        return next(choices)

    client.use_tokens(choose)
    peer.script[:] = [envelope(code=200)] * 2
    for _ in range(2):
        await client.beat(peer.root, "orders")
    assert asked == [("orders", peer.root, Secret(installation))] * 2
    assert [own in repr(each) for each in peer.requests] == [True, False]
    assert installation not in repr(peer.requests)


LOG_PAGE = {"fromLineNum": 1, "toLineNum": 2, "logContent": "a\nb\n", "isEnd": True}


@pytest.mark.parametrize("field", ["content", "data"])
async def test_a_log_page_is_read_from_either_field(wire: WireClient, peer: HttpPeer, field: str) -> None:
    peer.script[:] = [envelope(code=200, **{field: LOG_PAGE})]
    page = await client_of(wire).read_log(peer.root, "orders", LogQuery(9, SECOND_MS, 1))
    assert (page.from_line, page.to_line, page.content, page.is_end) == (1, 2, "a\nb\n", True)
    assert json.loads(peer.requests[0].body) == {"logDateTim": SECOND_MS, "logId": 9, "fromLineNum": 1}


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (envelope(code=500, msg="no"), MalformedMessageError),
        (envelope(code=200, content="text"), MalformedMessageError),
        (reset, UncertainError),
    ],
)
async def test_no_log_page_is_an_error(
    wire: WireClient, peer: HttpPeer, behaviour: Behaviour, error: type[Exception]
) -> None:
    peer.script[:] = [behaviour]
    with pytest.raises(error):
        await client_of(wire).read_log(peer.root, "orders", LogQuery(9, SECOND_MS, 1))


async def test_an_unreachable_log_is_an_error(wire: WireClient) -> None:
    with pytest.raises(UnreachableError):
        await client_of(wire).read_log(f"http://127.0.0.1:{unused_port()}/", "orders", LogQuery(9, SECOND_MS, 1))
