"""The built-in `httpJobHandler`, against real servers on loopback."""

import asyncio
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobwheel import JobContext
from jobwheel.executor.allowed import AllowedHost, read_hosts
from jobwheel.executor.http_job import http_job
from jobwheel.executor.invocation import Outcome
from jobwheel.executor.run_log import RunLog, RunLogFolder
from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.messages import TriggerRequest
from tests.integration.executor.conftest import MakeExecutor
from tests.support.executor_peer import DATE_MS, ExecutorPeer
from tests.support.http_peer import HttpPeer, never, raw, reply, unused_port
from tests.support.recording_admin import RecordingAdmin

LOOPBACK = (AllowedHost("127.0.0.1"),)
TLS = Path(__file__).parents[2] / "support" / "tls"


@pytest.fixture
def run_log(tmp_path: Path) -> Iterator[RunLog]:
    made = RunLogFolder(tmp_path, SystemClock()).create(1, DATE_MS)
    yield made
    made.close()


Send = Callable[..., Any]


@pytest.fixture
def send(run_log: RunLog) -> Send:
    """Runs the handler with a parameter, and tells the run's outcome."""

    async def run(parameter: object, hosts: tuple[AllowedHost, ...] = LOOPBACK, tls: Any = None) -> Outcome:
        text = parameter if isinstance(parameter, str) else json.dumps(parameter)
        context = JobContext(TriggerRequest(job_id=7, log_id=1, executor_params=text), run_log)
        await http_job(hosts, tls or ssl.create_default_context)(context)
        assert context.outcome is not None
        return context.outcome

    return run


def logged(run_log: RunLog) -> str:
    return Path(run_log.path).read_text()


async def test_all_fields_are_sent(send: Send, run_log: RunLog) -> None:
    async with HttpPeer([reply("all written, 账户".encode())]) as peer:
        job = {
            "url": f"{peer.root}daily?x=1#top",
            "method": "put",
            "contentType": "text/csv",
            "headers": {"X-Trace": "abc", "accept": "text/plain"},
            "cookies": {"a": "1", "b": "2"},
            "timeout": 2000,
            "data": "a,b\n账,2",
            "form": None,
            "auth": "Bearer willow-77",
        }
        assert await send(job) == Outcome(200, "HTTP 200")
    (request,) = peer.requests
    assert request.request_line == "PUT /daily?x=1 HTTP/1.1"
    assert request.body.decode() == "a,b\n账,2"
    sent = {
        name: request.headers.get(name) for name in ("content-type", "x-trace", "accept", "cookie", "authorization")
    }
    assert sent == {
        "content-type": "text/csv",
        "x-trace": "abc",
        "accept": "text/plain",
        "cookie": "a=1; b=2",
        "authorization": "Bearer willow-77",
    }
    assert "HTTP 200" in logged(run_log)
    assert "all written, 账户" in logged(run_log)
    assert "willow-77" not in logged(run_log)


@pytest.mark.parametrize(
    ("fields", "line", "content_type", "body"),
    [
        ({}, "GET /x HTTP/1.1", None, b""),
        (
            {"form": {"a b": "账"}},
            "POST /x HTTP/1.1",
            "application/x-www-form-urlencoded;charset=UTF-8",
            b"a+b=%E8%B4%A6",
        ),
        ({"form": {"a": "1"}, "method": "GET"}, "GET /x?a=1 HTTP/1.1", None, b""),
        ({"data": "{}"}, "POST /x HTTP/1.1", "application/json;charset=UTF-8", b"{}"),
    ],
)
async def test_what_is_left_out_is_as_usual(
    send: Send, fields: dict[str, Any], line: str, content_type: str | None, body: bytes
) -> None:
    async with HttpPeer() as peer:
        assert (await send({"url": f"{peer.root}x", **fields})).code == 200
    (request,) = peer.requests
    assert (request.request_line, request.headers.get("content-type"), request.body) == (line, content_type, body)


async def test_the_older_lines(send: Send) -> None:
    async with HttpPeer() as peer:
        assert (await send(f"url: {peer.root}x?a=b:c\r\nmethod: post\n\nData: k: v\n")).code == 200
    (request,) = peer.requests
    assert (request.request_line, request.body) == ("POST /x?a=b:c HTTP/1.1", b"k: v")


@pytest.mark.parametrize(
    ("status", "words"), [(201, "HTTP 201 from GET"), (500, "HTTP 500"), (302, "redirects are not followed")]
)
async def test_another_status_than_200_fails_and_nothing_is_followed(send: Send, status: int, words: str) -> None:
    async with HttpPeer() as target:
        answer = raw(f"HTTP/1.1 {status} X\r\nLocation: {target.root}\r\nContent-Length: 2\r\n\r\nno".encode())
        async with HttpPeer([answer]) as peer:
            outcome = await send({"url": peer.root})
    assert outcome.code == 500
    assert words in (outcome.message or "")
    assert not target.requests


async def test_a_long_answer_is_logged_cut(send: Send, run_log: RunLog, caplog: pytest.LogCaptureFixture) -> None:
    async with HttpPeer([reply(b"y" * 200_000)]) as peer:
        assert (await send({"url": peer.root})).code == 200
    assert logged(run_log).count("y") < 66_000
    assert "… cut: 200000 bytes in all" in logged(run_log)
    assert "yyy" not in caplog.text


async def test_who_does_not_answer_in_time_fails(send: Send) -> None:
    async with HttpPeer([never]) as peer:
        outcome = await send({"url": peer.root, "timeout": 150})
    assert outcome == Outcome(500, "no whole answer within 150 ms; the request may have arrived")


async def test_who_is_not_there_fails(send: Send) -> None:
    outcome = await send({"url": f"http://127.0.0.1:{unused_port()}/"})
    assert outcome.code == 500
    assert "is unreachable" in (outcome.message or "")


async def test_https_is_checked_against_the_host(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    trusting = ssl.create_default_context(cafile=TLS / "certificate.pem")
    async with HttpPeer(tls=server) as peer:
        assert (await send({"url": peer.root}, tls=lambda: trusting)).code == 200
        unknown = await send({"url": peer.root})
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", peer.port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        hosts = (*LOOPBACK, AllowedHost("api.example.com"))
        other = await send({"url": f"https://api.example.com:{peer.port}/"}, hosts, lambda: trusting)
    assert (unknown.code, other.code) == (500, 500)
    assert "certificate verify failed" in (unknown.message or "")
    assert "Hostname mismatch" in (other.message or "")


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("http://127.0.0.1:{port}/", "10.0.0.7"),
        ("http://127.0.0.1:{port}/", "127.0.0.1:1"),
        ("http://localhost:{port}/", "127.0.0.1"),
        ("http://127.1:{port}/", "127.0.0.1"),
        ("http://2130706433:{port}/", "127.0.0.1"),
        ("http://127.0.0.1.:{port}/", "127.0.0.1"),
        ("http://[::ffff:127.0.0.1]:{port}/", "127.0.0.1"),
        ("http://api.example.com@127.0.0.1:{port}/", "api.example.com"),
        ("http://127.0.0.1:{port}\\@api.example.com/", "api.example.com"),
        ("file:///etc/passwd", "127.0.0.1"),
    ],
)
async def test_a_host_that_is_not_named_is_not_asked(send: Send, url: str, hosts: str) -> None:
    async with HttpPeer() as peer:
        outcome = await send({"url": url.replace("{port}", str(peer.port))}, read_hosts("http_job_hosts", hosts))
        assert not peer.writers
    assert outcome.code == 500


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "::ffff:127.0.0.1", "fe80::1"])
async def test_a_name_that_leads_astray_is_not_asked(send: Send, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 80)),
        (family, socket.SOCK_STREAM, 6, "", (address, 80)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    outcome = await send({"url": "http://api.example.com/"}, (AllowedHost("api.example.com"),))
    assert outcome.code == 500
    assert f"its name stands for {address}" in (outcome.message or "")
    assert f"name {address} itself in http_job_hosts" in (outcome.message or "")


async def test_localhost_may_be_this_machine(send: Send) -> None:
    async with HttpPeer() as peer:
        assert (await send({"url": f"http://localhost:{peer.port}/"}, (AllowedHost("localhost"),))).code == 200


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ("", "the parameter is empty"),
        ("{", "no request in JSON"),
        ("{}", "url"),
        ('{"url": 7}', "url"),
        ('{"url": "http://127.0.0.1/", "metod": "GET"}', "metod"),
        ('{"url": "http://127.0.0.1/", "method": "BREW"}', "method 'BREW' is not one of GET, POST"),
        ('{"url": "http://127.0.0.1/", "timeout": 0}', "timeout 0 is not from 1"),
        ('{"url": "http://127.0.0.1/", "data": "x", "form": {"a": "b"}}', "data and form"),
        ('{"url": "http://127.0.0.1/", "headers": {"Host": "other"}}', "'Host' cannot be sent"),
        ('{"url": "http://127.0.0.1/", "headers": {"X": "a\\r\\nHost: b"}}', "'X' cannot be sent"),
        ('{"url": "http://127.0.0.1/", "auth": "账"}', "'Authorization' cannot be sent"),
        ('{"url": "http://127.0.0.1/a b"}', "holds a space"),
        ("url: http://127.0.0.1/\nurls: x", "'urls: x' begins with none of url:, method:, data:"),
        ("method: GET", "no line url:"),
    ],
)
async def test_a_parameter_that_is_no_request_fails_and_says_why(send: Send, parameter: str, words: str) -> None:
    outcome = await send(parameter)
    assert outcome.code == 500
    assert words in (outcome.message or "")


async def test_a_job_runs_it_where_the_executor_allows_it(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    async with HttpPeer() as target:
        executor = make_executor(http_job_hosts=f"127.0.0.1:{target.port}")
        await executor.start()
        peer = ExecutorPeer(executor.port)
        log_id = await asyncio.to_thread(peer.run, "httpJobHandler", json.dumps({"url": target.root}))
        assert (await asyncio.to_thread(admin.result_of, log_id))["handleCode"] == 200
    assert len(target.requests) == 1
    assert "httpJobHandler" not in make_executor().handlers
