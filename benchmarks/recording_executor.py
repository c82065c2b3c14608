"""A recording executor for measurements: takes runs, answers at once, reports success in batches, keeps no run files.

`python -m benchmarks.recording_executor PORT ADMIN TOKEN RECORD_FILE`: on SIGTERM it writes a line for each execution:
log id, planned time (epoch ms), time of arrival (epoch ms).
"""

import asyncio
import signal
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import uvloop

from jobwheel.kernel.buffer import BatchingBuffer, BufferLimits
from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.client import WireClient, join_url
from jobwheel.wire.codec import decode, decode_envelope, encode, encode_envelope
from jobwheel.wire.dialects import encode_callbacks
from jobwheel.wire.http_server import HttpServer, listen
from jobwheel.wire.messages import TOKEN_HEADER, Dialect, Features, RegistryRequest, Result, TriggerRequest
from jobwheel.wire.server import WireApp, WireRequest

APP_NAME: Final = "bench"
_TIMEOUT_S: Final = 10.0
_BATCH: Final = 50


class RecordingExecutor:
    """Says yes to every run and success a moment later."""

    def __init__(self, port: int, admin: str, token: str) -> None:
        self._clock = SystemClock()
        self._admin = admin
        self._address = f"http://127.0.0.1:{port}/"
        self._headers = {TOKEN_HEADER: token}
        self._features = Features(instance=str(uuid.uuid4()), version="bench")
        self._reply = encode_envelope(200, instance=self._features.instance)
        self._client = WireClient(self._clock)
        self._results = BatchingBuffer[Result](
            "results", self._report, lambda *_: None, self._clock, BufferLimits(_BATCH, 0.005), lambda _: True
        )
        app = WireApp({"/run": self._run, "/beat": self._beat})
        self._server = HttpServer("bench", app, listen("127.0.0.1", port), self._clock)
        self.executions: list[tuple[int, int, int]] = []

    async def serve(self) -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        for service in (self._client, self._results, self._server):
            await service.start()
        await self._register()
        while not await self._clock.wait(30.0, stop):
            await self._register()
        for service in (self._server, self._results, self._client):
            await service.stop()

    async def _register(self) -> None:
        request = RegistryRequest(
            registry_group="EXECUTOR",
            registry_key=APP_NAME,
            registry_value=self._address,
            features=self._features,
        )
        await self._client.post(join_url(self._admin, "/api/registry"), encode(request), self._headers, _TIMEOUT_S)

    async def _run(self, request: WireRequest) -> bytes:
        run = decode(request.body, TriggerRequest)
        planned_ms = run.scheduled_time if isinstance(run.scheduled_time, int) else run.log_date_time
        arrived_ms = time.time_ns() // 1_000_000
        self.executions.append((run.log_id, planned_ms, arrived_ms))
        self._results.add(Result(run.log_id, run.log_date_time, 200))
        return self._reply

    async def _beat(self, _: WireRequest) -> bytes:
        return self._reply

    async def _report(self, results: Sequence[Result]) -> None:
        body = encode_callbacks(list(results), Dialect.B)
        reply = await self._client.post(join_url(self._admin, "/api/callback"), body, self._headers, _TIMEOUT_S)
        if not decode_envelope(reply.body).ok:
            raise RuntimeError(f"the admin refused results: {reply.body[:200]!r}")


def main() -> None:
    port, admin, token, record = sys.argv[1:]
    executor = RecordingExecutor(int(port), admin, token)
    uvloop.run(executor.serve())
    with Path(record).open("w") as file:
        file.writelines(
            f"{log_id} {planned_ms} {arrived_ms}\n" for log_id, planned_ms, arrived_ms in executor.executions
        )


if __name__ == "__main__":
    main()
