import json
from collections.abc import Iterable, MutableMapping
from typing import Any

import pytest

from jobwheel.wire.codec import decode, encode_envelope
from jobwheel.wire.messages import MAX_BODY_BYTES, JobQuery
from jobwheel.wire.server import WireApp, WireRequest, normalise_path


class Echo:
    """A handler that keeps what it got."""

    def __init__(self) -> None:
        self.requests: list[WireRequest] = []

    async def __call__(self, request: WireRequest) -> bytes:
        self.requests.append(request)
        if request.body == b"crash":
            raise ZeroDivisionError("a secret detail")
        return encode_envelope(200, None, decode(request.body, JobQuery).job_id)


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def app(echo: Echo) -> WireApp:
    return WireApp({"/kill": echo, "/api/callback": echo})


def message(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


async def ask(
    app: WireApp,
    path: str = "/kill",
    *messages: dict[str, Any],
    method: str = "POST",
    headers: Iterable[tuple[bytes, bytes]] = (),
    client: tuple[str, int] | None = ("10.0.0.9", 4711),
) -> dict[str, Any]:
    """Ask the application over ASGI; the envelope it answers with. The HTTP side of the answer is checked here."""
    left = list(messages) or [message(b'{"jobId":7}')]
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return left.pop(0) if left else {"type": "http.disconnect"}

    async def send(event: MutableMapping[str, Any]) -> None:
        sent.append(event)

    scope = {"type": "http", "method": method, "path": path, "headers": list(headers), "client": client}
    await app(scope, receive, send)
    start, body = sent
    assert start["status"] == 200
    assert dict(start["headers"]) == {
        b"content-type": b"application/json;charset=UTF-8",
        b"content-length": str(len(body["body"])).encode(),
    }
    envelope: dict[str, Any] = json.loads(body["body"])
    return envelope


def failure(msg: str) -> dict[str, Any]:
    return {"code": 500, "msg": msg, "content": None, "data": None}


async def test_a_handler_gets_the_request_and_its_reply_is_sent(app: WireApp, echo: Echo) -> None:
    answer = await ask(app, headers=[(b"xxl-job-access-token", b"willow-77"), (b"x-word", b"caf\xe9")])
    assert answer == {"code": 200, "msg": None, "content": 7, "data": 7}
    (request,) = echo.requests
    assert (request.path, request.body, request.client) == ("/kill", b'{"jobId":7}', "10.0.0.9")
    assert request.header("XXL-JOB-ACCESS-TOKEN") == "willow-77"
    assert request.header("X-Word") == "caf\xe9"
    assert request.header("x-none") is None


@pytest.mark.parametrize("path", ["/kill", "/kill/", "//kill", "//kill//"])
async def test_extra_slashes_are_tolerated(app: WireApp, echo: Echo, path: str) -> None:
    assert (await ask(app, path))["code"] == 200
    assert app.handles(path)
    assert echo.requests[0].path == "/kill"


@pytest.mark.parametrize("path", ["/", "/Kill", "/kill/x", "/api", "/killer"])
async def test_an_unknown_path_is_named_word_for_word(app: WireApp, path: str) -> None:
    assert await ask(app, path) == failure(f"invalid request, uri-mapping({path}) not found.")
    assert not app.handles(path)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("path", ["/kill", "/unknown"])
async def test_another_method_is_refused_word_for_word(app: WireApp, echo: Echo, method: str, path: str) -> None:
    assert await ask(app, path, method=method) == failure("invalid request, HttpMethod not support.")
    assert echo.requests == []


async def test_a_body_in_pieces_is_put_together(app: WireApp) -> None:
    pieces = [message(b'{"job', more=True), message(b"", more=True), message(b'Id":9}')]
    assert (await ask(app, "/kill", *pieces))["data"] == 9


async def test_a_body_as_large_as_may_be_is_read_and_a_larger_one_refused(app: WireApp, echo: Echo) -> None:
    body = b'{"jobId":7}'.ljust(MAX_BODY_BYTES)
    assert (await ask(app, "/kill", message(body)))["code"] == 200
    refusal = failure(f"the body is larger than {MAX_BODY_BYTES} bytes")
    assert await ask(app, "/kill", message(body + b" ")) == refusal
    assert await ask(app, "/kill", message(body, more=True), message(b" ", more=True)) == refusal
    assert len(echo.requests) == 1


async def test_a_client_that_hangs_up_amid_its_body_has_no_effect(
    app: WireApp, echo: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await ask(app, "/kill", message(b'{"jobId":7}', more=True))
    assert answer == failure("the body ended early: the client went away")
    assert echo.requests == []
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_a_malformed_message_names_the_field_and_leaves_one_log_line(
    app: WireApp, caplog: pytest.LogCaptureFixture
) -> None:
    assert await ask(app, "/kill", message(b'{"jobId":"7"}')) == failure("jobId: expected int, got str")
    (record,) = caplog.records
    assert record.getMessage() == (
        'wire.malformed_request path=/kill client=10.0.0.9 error="jobId: expected int, got str"'
    )


async def test_who_is_refused_keeps_nothing_in_memory(echo: Echo) -> None:
    seen: list[WireRequest] = []

    def refuse(request: WireRequest) -> bytes | None:
        seen.append(request)
        return None if request.header("x-word") == "open" else encode_envelope(500, "no")

    app = WireApp({"/kill": echo}, refuse)
    endless = [message(b"x" * 1000, more=True) for _ in range(3)]
    assert await ask(app, "/kill", *endless) == failure("no")
    # What was not asked for was not read.
    assert [(request.path, request.body) for request in seen] == [("/kill", b"")]
    assert echo.requests == []
    assert (await ask(app, headers=[(b"x-word", b"open")]))["code"] == 200
    assert [request.body for request in echo.requests] == [b'{"jobId":7}']
    assert (await ask(app, "/unknown"))["msg"] == "invalid request, uri-mapping(/unknown) not found."
    assert len(seen) == 2


async def test_trailers_are_no_headers(echo: Echo) -> None:
    headers = [(b"xxl-job-access-token", b"right")]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        # As uvicorn does it.
        headers.append((b"xxl-job-access-token", b"another"))
        return message(b'{"jobId":7}')

    async def send(event: Any) -> None:
        sent.append(event)

    await WireApp({"/kill": echo})({"method": "POST", "path": "/kill", "headers": headers}, receive, send)
    assert echo.requests[0].header("XXL-JOB-ACCESS-TOKEN") == "right"


async def test_an_unexpected_error_is_logged_in_full_and_told_without_its_details(
    app: WireApp, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await ask(app, "/kill", message(b"crash"), client=None)
    assert answer == failure("/kill failed here: ZeroDivisionError; the log has the details")
    (record,) = caplog.records
    assert record.exc_info is not None
    assert "client=unknown" in record.getMessage()


def test_paths_have_one_slash_between_and_none_behind() -> None:
    assert [normalise_path(path) for path in ("", "/", "//", "/a/", "//a///b//")] == ["/", "/", "/", "/a", "/a/b"]
