"""A recording executor for measurements: takes runs, answers at once, reports success in batches, keeps no run files.

`python -m benchmarks.recording_executor PORT ADMIN[,ADMIN] TOKEN RECORD_FILE APP_NAME [batched]`: on SIGTERM it writes
a line for each execution: log id, planned time (epoch ms), time of arrival (epoch ms). With `batched` it announces
`/runBatch`. It registers at each admin, and reports to one after the other.

It shares the machine with the admin that is measured, so it does nothing that an executor need not do: its own few
lines of HTTP instead of a server's, and of a request it reads three numbers.
"""

import array
import asyncio
import itertools
import re
import signal
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

import msgspec
import uvloop

from jobwheel.kernel.buffer import BatchingBuffer, BufferLimits
from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.batch import BATCH_PATH, encode_batch_reply
from jobwheel.wire.client import WireClient, join_url
from jobwheel.wire.codec import decode_envelope, encode, encode_envelope
from jobwheel.wire.http_server import listen
from jobwheel.wire.messages import CONTENT_TYPE, TOKEN_HEADER, Features, RegistryRequest

_TIMEOUT_S: Final = 10.0
_LIMITS: Final = BufferLimits(most_items=2000, most_wait_s=0.02)
_LENGTH: Final = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_HEAD_END: Final = b"\r\n\r\n"
_REPLY_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"


class _Run(msgspec.Struct, rename="camel", gc=False):
    """What is read of a trigger request."""

    log_id: int
    log_date_time: int
    scheduled_time: int = 0


class _Result(msgspec.Struct, gc=False):
    """A callback's item as executors of 2.3 to 3.4 write it."""

    log_id: int = msgspec.field(name="logId")
    log_date_time: int = msgspec.field(name="logDateTim")
    code: int = msgspec.field(name="handleCode", default=200)
    message: str | None = msgspec.field(name="handleMsg", default=None)


class RecordingExecutor:
    """Says yes to every run and success a moment later."""

    def __init__(self, port: int, admins: Sequence[str], token: str, app_name: str, *, batched: bool) -> None:
        self._clock = SystemClock()
        self._admins = admins
        self._next_admin = itertools.cycle(admins)
        self._port = port
        self._app_name = app_name
        self._headers = {TOKEN_HEADER: token}
        self._features = Features(instance=str(uuid.uuid4()), version="bench", batch=batched)
        self._yes = encode_envelope(200, instance=self._features.instance)
        self._client = WireClient(self._clock)
        self._results = BatchingBuffer[_Result](
            "results", self._report, lambda *_: None, self._clock, _LIMITS, lambda _: True
        )
        self._one, self._many = msgspec.json.Decoder(_Run), msgspec.json.Decoder(list[_Run])
        self.executions = array.array("q")

    async def serve(self) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        for service in (self._client, self._results):
            await service.start()
        server = await loop.create_server(lambda: _Connection(self), sock=listen("127.0.0.1", self._port))
        await self._register()
        while not await self._clock.wait(30.0, stop):
            await self._register()
        server.close()
        for service in (self._results, self._client):
            await service.stop()

    def answer(self, path: bytes, body: bytes) -> bytes:
        """The envelope for a request."""
        if path == b"/run":
            self._take([self._one.decode(body)])
        elif path == BATCH_PATH.encode():
            runs = self._many.decode(body)
            self._take(runs)
            return encode_batch_reply([self._yes] * len(runs), instance=self._features.instance)
        elif path != b"/beat":
            return encode_envelope(500, f"invalid request, uri-mapping({path.decode('latin-1')}) not found.")
        return self._yes

    def _take(self, runs: Sequence[_Run]) -> None:
        arrived_ms = time.time_ns() // 1_000_000
        for run in runs:
            self.executions.extend((run.log_id, run.scheduled_time or run.log_date_time, arrived_ms))
            self._results.add(_Result(run.log_id, run.log_date_time))

    async def _register(self) -> None:
        request = RegistryRequest(
            registry_group="EXECUTOR",
            registry_key=self._app_name,
            registry_value=f"http://127.0.0.1:{self._port}/",
            features=self._features,
        )
        for admin in self._admins:
            await self._client.post(join_url(admin, "/api/registry"), encode(request), self._headers, _TIMEOUT_S)

    async def _report(self, results: Sequence[_Result]) -> None:
        body = msgspec.json.encode(results)
        url = join_url(next(self._next_admin), "/api/callback")
        reply = await self._client.post(url, body, self._headers, _TIMEOUT_S)
        if not decode_envelope(reply.body).ok:
            raise RuntimeError(f"the admin refused results: {reply.body[:200]!r}")


class _Connection(asyncio.Protocol):
    """HTTP/1.1 as admins speak it: requests with a Content-Length, one after the other."""

    def __init__(self, executor: RecordingExecutor) -> None:
        self._executor = executor
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        data = self._unread + data if self._unread else data
        while (head_end := data.find(_HEAD_END)) >= 0:
            length = _LENGTH.search(data, 0, head_end)
            begin = head_end + len(_HEAD_END)
            end = begin + (int(length[1]) if length else 0)
            if len(data) < end:
                break
            body = self._executor.answer(data.split(b" ", 2)[1], data[begin:end])
            self._transport.write(_REPLY_HEAD % (CONTENT_TYPE.encode(), len(body)) + body)
            data = data[end:]
        self._unread = data


def main() -> None:
    port, admins, token, record, app_name, *rest = sys.argv[1:]
    executor = RecordingExecutor(int(port), admins.split(","), token, app_name, batched="batched" in rest)
    uvloop.run(executor.serve())
    numbers = iter(executor.executions)
    with Path(record).open("w") as file:
        file.writelines(
            f"{log_id} {planned_ms} {arrived_ms}\n"
            for log_id, planned_ms, arrived_ms in zip(numbers, numbers, numbers, strict=True)
        )


if __name__ == "__main__":
    main()
