import asyncio
from collections.abc import AsyncIterator

import pytest

from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.client import UncertainError, UnreachableError, WireClient, WireReply
from jobwheel.wire.messages import MAX_BODY_BYTES
from tests.support.eventually import eventually
from tests.support.http_peer import Behaviour, HttpPeer, after, chunked, never, raw, reply, reset, unused_port

HEADERS = {"Content-Type": "application/json;charset=UTF-8", "XXL-JOB-ACCESS-TOKEN": "kestrel-41"}


@pytest.fixture
async def client() -> AsyncIterator[WireClient]:
    client = WireClient(SystemClock(), connect_timeout_s=0.3)
    await client.start()
    yield client
    await client.stop()
    assert client.open_connections == 0
    assert client.busy_connections == 0


async def post(client: WireClient, peer: HttpPeer, body: bytes = b'{"jobId":7}', timeout_s: float = 3.0) -> WireReply:
    return await client.post(peer.url, body, HEADERS, timeout_s)


async def test_posts_the_body_with_its_headers_and_returns_the_reply(client: WireClient) -> None:
    async with HttpPeer([reply(b'{"code":500}', status=202)]) as peer:
        answer = await client.post(f"{peer.root}a/run?x=1", b'{"jobId":7}', HEADERS, 3.0)
    assert answer == WireReply(202, b'{"code":500}')
    (request,) = peer.requests
    assert request.request_line == "POST /a/run?x=1 HTTP/1.1"
    assert request.body == b'{"jobId":7}'
    assert request.headers == {
        "host": f"127.0.0.1:{request.headers['host'].rpartition(':')[2]}",
        "content-type": "application/json;charset=UTF-8",
        "xxl-job-access-token": "kestrel-41",
        "content-length": "11",
    }


async def test_host_header_names_the_port_unless_it_is_the_default(client: WireClient) -> None:
    async with HttpPeer() as peer:
        await post(client, peer)
        assert peer.requests[0].headers["host"] == f"127.0.0.1:{peer.port}"


async def test_second_request_uses_the_same_connection(client: WireClient) -> None:
    async with HttpPeer() as peer:
        for _ in range(3):
            assert (await post(client, peer)).status == 200
        assert [request.connection for request in peer.requests] == [1, 1, 1]
        assert client.open_connections == 1


async def test_requests_at_once_use_connections_of_their_own_and_the_last_used_is_taken_first(
    client: WireClient,
) -> None:
    first_may_answer, second_may_answer = asyncio.Event(), asyncio.Event()
    async with HttpPeer([after(first_may_answer, reply()), after(second_may_answer, reply())]) as peer:
        first = asyncio.create_task(post(client, peer))
        await peer.wait_requests(1)
        second = asyncio.create_task(post(client, peer))
        await peer.wait_requests(2)
        assert client.busy_connections == client.open_connections == 2
        second_may_answer.set()
        await second
        first_may_answer.set()
        await first
        await post(client, peer)
        assert [request.connection for request in peer.requests] == [1, 2, 1]


@pytest.mark.parametrize(
    ("behaviour", "body"),
    [
        pytest.param(chunked(b"one ", b"two ", b"three"), b"one two three", id="chunked"),
        pytest.param(raw(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                         b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), b"ok", id="1xx first"),
        pytest.param(raw(b"HT", b"TP/1.1 200 OK\r\nContent-Le", b"ngth: 4\r\n\r\nab", b"cd"), b"abcd", id="in pieces"),
        pytest.param(raw(b"HTTP/1.1 204 No Content\r\n\r\n"), b"", id="no content"),
        pytest.param(reply(b""), b"", id="empty"),
        pytest.param(reply(b"x" * MAX_BODY_BYTES), b"x" * MAX_BODY_BYTES, id="as large as may be"),
    ],
)  # fmt: skip
async def test_reads_every_kind_of_reply_and_keeps_the_connection(
    client: WireClient, behaviour: Behaviour, body: bytes
) -> None:
    async with HttpPeer([behaviour]) as peer:
        assert (await post(client, peer)).body == body
        assert (await post(client, peer)).body == b'{"code":200}'
        assert [request.connection for request in peer.requests] == [1, 1]


@pytest.mark.parametrize(
    ("behaviour", "body"),
    [
        pytest.param(raw(b"HTTP/1.1 200 OK\r\n\r\nuntil ", b"the end", close=True), b"until the end", id="until EOF"),
        pytest.param(raw(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"), b"ok", id="HTTP/1.0"),
        pytest.param(reply(b"bye", headers="Connection: close\r\n"), b"bye", id="says close"),
        pytest.param(reply(b"ok" + b"HTTP/1.1 200 OK\r\n", close=True), b"okHTTP/1.1 200 OK\r\n", id="closes unsaid"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\n"
                         b"two"), b"ok", id="two replies"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more"), b"ok", id="bytes behind"),
    ],
)  # fmt: skip
async def test_reads_the_reply_and_opens_a_new_connection_for_the_next(
    client: WireClient, behaviour: Behaviour, body: bytes
) -> None:
    async with HttpPeer([behaviour]) as peer:
        assert await post(client, peer) == WireReply(200, body)
        await eventually(lambda: client.open_connections == 0)
        assert (await post(client, peer)).body == b'{"code":200}'
        assert [request.connection for request in peer.requests] == [1, 2]


async def test_a_redirect_is_a_reply_and_is_not_followed(client: WireClient) -> None:
    async with HttpPeer([reply(b"", status=307, headers="Location: /other\r\n")]) as peer:
        assert (await post(client, peer)).status == 307
        assert len(peer.requests) == 1


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        pytest.param(raw(close=True), "closed before the reply was complete", id="closes without a word"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\nContent-Le", close=True), "closed before", id="half a head"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", close=True), "closed before", id="half"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", close=True),
                     "closed before", id="chunks without an end"),
        pytest.param(raw(b"HTTP/1.1 100 Continue\r\n\r\n", close=True), "closed before", id="only 1xx"),
        pytest.param(reset, "lost", id="reset"),
        pytest.param(raw(b"220 mail.example ESMTP\r\n"), "no HTTP", id="no HTTP"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"), "no HTTP", id="bad length"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nmany\r\n"), "no HTTP", id="bad chunk"),
        pytest.param(raw(b"HTTP/1.1 101 Go\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"), "another protocol",
                     id="upgrade"),
        pytest.param(reply(b"x" * (MAX_BODY_BYTES + 1)), "larger than", id="too large"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\n\r\n", *[b"x" * 1_000_000] * 11), "larger than", id="too large, no end"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\n", *[b"X-More: yes\r\n" * 1000] * 6), "larger than", id="endless head"),
        pytest.param(never, "no reply in time", id="never answers"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nslow"), "no reply in time", id="stops half-way"),
    ],
)  # fmt: skip
async def test_after_the_first_byte_every_failure_is_uncertain_and_nothing_is_sent_again(
    client: WireClient, behaviour: Behaviour, reason: str
) -> None:
    async with HttpPeer([reply(), behaviour]) as peer:
        await post(client, peer)
        with pytest.raises(UncertainError, match=reason) as caught:
            await post(client, peer, timeout_s=0.3)
        assert str(peer.url) in str(caught.value)
        assert client.busy_connections == 0
        await post(client, peer)
        assert [request.connection for request in peer.requests] == [1, 1, 2]


async def test_nobody_listens_is_unreachable(client: WireClient) -> None:
    with pytest.raises(UnreachableError):
        await client.post(f"http://127.0.0.1:{unused_port()}/run", b"", {}, 3.0)
    assert client.open_connections == 0


async def test_a_name_that_nobody_knows_is_unreachable(client: WireClient) -> None:
    with pytest.raises(UnreachableError):
        await client.post("http://no-such-host.invalid/run", b"", {}, 3.0)
    with pytest.raises(UnreachableError):
        await client.post(f"http://{'a' * 64}.invalid/run", b"", {}, 3.0)


async def test_an_idle_connection_that_the_peer_closed_is_not_written_to(client: WireClient) -> None:
    async with HttpPeer() as peer:
        await post(client, peer)
        # The loop does not come round between these two lines, so only the kernel knows of the close.
        peer.hang_up_now()
        assert (await post(client, peer)).status == 200
        assert [request.connection for request in peer.requests] == [1, 2]


async def test_bytes_that_nobody_asked_for_end_an_idle_connection(client: WireClient) -> None:
    async with HttpPeer() as peer:
        await post(client, peer)
        peer.say_now(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfake")
        assert (await post(client, peer)).body == b'{"code":200}'
        assert [request.connection for request in peer.requests] == [1, 2]
        peer.say_now(b"HTTP/1.1 200 OK\r\n", connection=2)
        await eventually(lambda: client.open_connections == 0)


async def test_cancelling_closes_the_connection(client: WireClient) -> None:
    async with HttpPeer([never]) as peer:
        task = asyncio.create_task(post(client, peer))
        await peer.wait_requests(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert client.busy_connections == 0
        await eventually(lambda: client.open_connections == 0)
        await post(client, peer)
        assert [request.connection for request in peer.requests] == [1, 2]


async def test_stop_fails_what_is_under_way_and_refuses_what_comes_later(client: WireClient) -> None:
    async with HttpPeer([never]) as peer:
        task = asyncio.create_task(post(client, peer))
        await peer.wait_requests(1)
        await client.stop()
        assert client.open_connections == 0
        with pytest.raises(UncertainError, match="stopped"):
            await task
        with pytest.raises(UnreachableError, match="not running"):
            await post(client, peer)
        assert len(peer.writers) == 1
        await client.start()
        assert (await post(client, peer)).status == 200
