import asyncio
import gc
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobwheel.kernel.clock import SystemClock
from jobwheel.kernel.fake_clock import FakeClock
from jobwheel.wire.client import UncertainError, UnreachableError, WireClient
from jobwheel.wire.why import Why
from tests.support.eventually import eventually
from tests.support.http_peer import HttpPeer, never, raw, reply

TLS = Path(__file__).parents[2] / "support" / "tls"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(clock: FakeClock) -> AsyncIterator[WireClient]:
    client = WireClient(clock, idle_s=60.0)
    await client.start()
    yield client
    await client.stop()
    assert client.open_connections == 0


@pytest.fixture
async def real_time_client() -> AsyncIterator[WireClient]:
    client = WireClient(SystemClock(), connect_timeout_s=0.2)
    await client.start()
    yield client
    await client.stop()


async def test_a_request_fails_at_its_deadline_and_not_before(client: WireClient, clock: FakeClock) -> None:
    async with HttpPeer([never]) as peer:
        task = asyncio.create_task(client.post(peer.url, b"{}", {}, 3.0))
        await peer.wait_requests(1)
        await clock.advance(2.99)
        assert not task.done()
        await clock.advance(0.1)
        with pytest.raises(UncertainError, match="no reply in time"):
            await task


async def test_each_request_has_a_deadline_of_its_own(client: WireClient, clock: FakeClock) -> None:
    async with HttpPeer([never, never]) as peer:
        slow = asyncio.create_task(client.post(peer.url, b"{}", {}, 10.0))
        quick = asyncio.create_task(client.post(peer.url, b"{}", {}, 1.0))
        await peer.wait_requests(2)
        await clock.advance(1.1)
        assert (quick.done(), slow.done()) == (True, False)
        await clock.advance(9)
        assert [type(error) for error in await asyncio.gather(slow, quick, return_exceptions=True)] == [
            UncertainError,
            UncertainError,
        ]


async def test_idle_connections_are_dropped_after_their_time(client: WireClient, clock: FakeClock) -> None:
    async with HttpPeer() as peer:
        await client.post(peer.url, b"{}", {}, 3.0)
        await clock.advance(59)
        assert client.open_connections == 1
        await clock.advance(2)
        await eventually(lambda: client.open_connections == 0)


async def test_use_keeps_a_connection_and_the_unused_one_beside_it_is_dropped(
    client: WireClient, clock: FakeClock
) -> None:
    async with HttpPeer() as peer:
        await asyncio.gather(client.post(peer.url, b"{}", {}, 3.0), client.post(peer.url, b"{}", {}, 3.0))
        for _ in range(4):
            await clock.advance(20)
            await client.post(peer.url, b"{}", {}, 3.0)
        await eventually(lambda: client.open_connections == 1)
        assert len({request.connection for request in peer.requests[2:]}) == 1


async def test_an_unused_connection_is_dropped_in_its_own_time(client: WireClient, clock: FakeClock) -> None:
    async with HttpPeer() as peer:
        await asyncio.gather(client.post(peer.url, b"{}", {}, 3.0), client.post(peer.url, b"{}", {}, 3.0))
        await clock.advance(30)
        await client.post(peer.url, b"{}", {}, 3.0)
        await clock.advance(29)
        assert client.open_connections == 2
        await clock.advance(2)
        await eventually(lambda: client.open_connections == 1)


async def test_an_unused_connection_is_dropped_while_another_is_busy(client: WireClient, clock: FakeClock) -> None:
    async with HttpPeer([never, reply()]) as peer:
        long = asyncio.create_task(client.post(peer.url, b"{}", {}, 3600.0))
        await peer.wait_requests(1)
        await client.post(peer.url, b"{}", {}, 3.0)
        assert client.open_connections == 2
        await clock.advance(61)
        await eventually(lambda: client.open_connections == 1)
        assert not long.done()
        await client.stop()
        with pytest.raises(UncertainError):
            await long


async def test_time_asleep_counts_as_idle(client: WireClient, clock: FakeClock) -> None:
    async with HttpPeer() as peer:
        await client.post(peer.url, b"{}", {}, 3.0)
        clock.suspend(61)
        await client.post(peer.url, b"{}", {}, 3.0)
        assert [request.connection for request in peer.requests] == [1, 2]


async def test_connections_are_kept_apart_by_host_and_port(client: WireClient) -> None:
    async with HttpPeer() as one, HttpPeer() as two:
        for peer in (one, two, one, two):
            await client.post(peer.url, b"{}", {}, 3.0)
        await client.post(one.url.replace("127.0.0.1", "localhost"), b"{}", {}, 3.0)
        assert [request.connection for request in one.requests] == [1, 1, 2]
        assert [request.connection for request in two.requests] == [1, 1]


async def test_an_answer_before_the_whole_request_was_read_is_taken_and_the_connection_is_not_kept(
    client: WireClient,
) -> None:
    async def answer_and_stay(writer: asyncio.StreamWriter) -> None:
        await reply(b"no", status=413)(writer)
        await never(writer)

    async with HttpPeer([answer_and_stay], reads_bodies=False) as peer:
        answer = await client.post(peer.url, b"x" * 30_000_000, {}, 3.0)
        assert answer.status == 413
        await eventually(lambda: client.open_connections == 0)


async def test_a_peer_that_accepts_no_connection_is_unreachable_after_the_connect_time_out(
    real_time_client: WireClient,
) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.create_connection(full.getsockname()):
        # The kernel keeps one connection waiting; a second one gets no answer.
        with pytest.raises(UnreachableError, match=r"no connection within 0\.2 s"):
            await real_time_client.post(f"http://127.0.0.1:{full.getsockname()[1]}/run", b"{}", {}, 3.0)
        assert real_time_client.open_connections == 0


async def test_cancelling_while_connecting_leaves_nothing_open(real_time_client: WireClient) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.create_connection(full.getsockname()):
        url = f"http://127.0.0.1:{full.getsockname()[1]}/run"
        task = asyncio.create_task(real_time_client.post(url, b"{}", {}, 3.0))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(task), 0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert real_time_client.open_connections == 0


async def test_a_stop_while_connecting_writes_nothing(client: WireClient) -> None:
    async with HttpPeer() as peer:
        task = asyncio.create_task(client.post(peer.url, b"{}", {}, 3.0))
        await asyncio.wait({task}, timeout=0)
        await client.stop()
        with pytest.raises(UnreachableError, match="not running"):
            await task
        assert peer.requests == []
        await eventually(lambda: len(peer.writers) == 1 and peer.writers[0].is_closing())


async def test_a_failure_in_the_turn_of_the_cancellation_is_not_reported_as_unseen(
    client: WireClient, caplog: pytest.LogCaptureFixture
) -> None:
    async with HttpPeer([never]) as peer:
        task = asyncio.create_task(client.post(peer.url, b"{}", {}, 3.0))
        await peer.wait_requests(1)
        next(iter(client._busy)).fail(Why.NO_REPLY.because())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    del task
    gc.collect()
    assert not [record for record in caplog.records if "never retrieved" in record.getMessage()]


async def test_https_with_a_certificate_authority_of_ones_own(clock: FakeClock) -> None:
    trusting = ssl.create_default_context(cafile=TLS / "certificate.pem")
    client = WireClient(clock, ssl_context=trusting)
    await client.start()
    async with HttpPeer([reply(b"safe"), reply(b"again"), raw(close=True)], tls=_server_context()) as peer:
        assert (await client.post(peer.url, b"{}", {}, 3.0)).body == b"safe"
        assert (await client.post(peer.url, b"{}", {}, 3.0)).body == b"again"
        with pytest.raises(UncertainError):
            await client.post(peer.url, b"{}", {}, 3.0)
        assert [request.connection for request in peer.requests] == [1, 1, 1]
    await client.stop()


async def test_a_certificate_that_nobody_vouches_for_is_unreachable(client: WireClient) -> None:
    async with HttpPeer(tls=_server_context()) as peer:
        with pytest.raises(UnreachableError, match="certificate"):
            await client.post(peer.url, b"{}", {}, 3.0)
        assert peer.requests == []


async def test_a_peer_that_never_shakes_hands_is_unreachable(real_time_client: WireClient) -> None:
    async with HttpPeer([never]) as peer:
        with pytest.raises(UnreachableError, match="no connection within"):
            await real_time_client.post(peer.url.replace("http:", "https:"), b"{}", {}, 3.0)


async def test_ipv6(client: WireClient) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    async with HttpPeer(host="::1") as peer:
        await client.post(peer.url, b"{}", {}, 3.0)
        assert peer.requests[0].headers["host"] == f"[::1]:{peer.port}"


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    return context
