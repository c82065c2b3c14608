"""What a request costs the keep-alive client, against a trivial peer: `python -m benchmarks.dispatch [--json]`.

100 requests are under way at a time. The peer is a process of its own, so its work is not counted.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection
from typing import Final, cast

import uvloop

from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.client import WireClient, join_url
from jobwheel.wire.codec import encode, encode_envelope
from jobwheel.wire.messages import CONTENT_TYPE, TOKEN_HEADER, TriggerRequest

_AT_ONCE: Final = 100
_REQUESTS_EACH: Final = 500
_ROUNDS: Final = 5
_HEADERS: Final = {"Content-Type": CONTENT_TYPE, TOKEN_HEADER: "a-token-of-usual-length-0123456789"}
_ENVELOPE: Final = encode_envelope(200)
_REPLY: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_ENVELOPE) + _ENVELOPE
)


class _Peer(asyncio.Protocol):
    """Answers whatever comes: a request of this size comes in one piece."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:  # noqa: ARG002 - the base's
        self._transport.write(_REPLY)


def _serve(ready: Connection) -> None:
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(_Peer, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(serve())


async def _measure(port: int) -> dict[str, float]:
    client = WireClient(SystemClock())
    await client.start()
    url = join_url(f"http://127.0.0.1:{port}/", "/run")
    rounds = [await _round(client, url, _REQUESTS_EACH if number else 5) for number in range(_ROUNDS + 1)][1:]
    await client.stop()
    return {
        "us_per_request": round(statistics.median(cost for cost, _ in rounds), 1),
        "requests_per_s": round(statistics.median(rate for _, rate in rounds)),
    }


async def _round(client: WireClient, url: str, requests_each: int) -> tuple[float, float]:
    """CPU microseconds per request, and requests per second."""
    body = encode(TriggerRequest(job_id=7, log_id=90071, executor_handler="sample", executor_params="x" * 100))

    async def worker() -> None:
        for _ in range(requests_each):
            await client.post(url, body, _HEADERS, 3.0)

    cpu_s, wall_s = time.process_time(), time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(_AT_ONCE)))
    count = requests_each * _AT_ONCE
    return (time.process_time() - cpu_s) / count * 1e6, count / (time.perf_counter() - wall_s)


def measure() -> dict[str, float]:
    ours, theirs = multiprocessing.Pipe()
    peer = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    peer.start()
    try:
        return uvloop.run(_measure(ours.recv()))
    finally:
        peer.terminate()
        peer.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON line")
    arguments = parser.parse_args()
    figures = measure()
    if arguments.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:<20} {figure:>10}")


if __name__ == "__main__":
    main()
