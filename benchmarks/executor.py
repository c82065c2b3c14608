"""The SDK's executor: `python -m benchmarks.executor [--seconds N] [--jobs N] [--json]`.

An executor process with a handler that does nothing, async and sync; this process is its admin, which sends runs in
batches of 50 and keeps 2,000 on their way. A run counts when its result has been reported. Meanwhile a beat is asked
for each 20 ms on a connection of its own. Resident memory is that of the executor before its first run. Lost: accepted
and not reported when all is over; doubled: reported twice.

On ext4 it is slow for minutes after many files were deleted, as by the run before: see `docs/explanation/speed.md`.
"""

import asyncio
import contextlib
import itertools
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvloop

from benchmarks.processes import cpu_s, free_port, resident_mib, stop
from benchmarks.report import Figures, run_alone
from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.batch import BATCH_PATH, decode_batch_reply, encode_batch
from jobwheel.wire.client import WireClient, join_url
from jobwheel.wire.codec import decode_envelope, encode_envelope
from jobwheel.wire.dialects import decode_callbacks
from jobwheel.wire.http_server import HttpServer, listen
from jobwheel.wire.messages import TOKEN_HEADER, Envelope, TriggerRequest
from jobwheel.wire.server import WireApp, WireRequest

_IN_REQUEST: Final = 50
_UNDER_WAY: Final = 2000
_SENDERS: Final = 4
_BEAT_EVERY_S: Final = 0.02
_TIMEOUT_S: Final = 30.0
_WARM_UP_S: Final = 2.0
_SETTLE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Load:
    """What is measured: so long for each kind of handler, after `warm_up_s`, over so many jobs."""

    seconds: float = 20.0
    jobs: int = 16
    warm_up_s: float = _WARM_UP_S


def measure(load: Load) -> Figures:
    """Run it; everything it starts has ended when this returns."""
    return uvloop.run(_measure(load))


class _Admin:
    """Knows what it has sent and what was reported."""

    def __init__(self, token: str) -> None:
        self.headers = {TOKEN_HEADER: token}
        self.registered = asyncio.Event()
        self.changed = asyncio.Event()
        self.open: set[int] = set()
        self.reported = self.doubled = 0

    async def registry(self, _: WireRequest) -> bytes:
        self.registered.set()
        return encode_envelope(200)

    async def callback(self, request: WireRequest) -> bytes:
        results = decode_callbacks(request.body).results
        before = len(self.open)
        self.open.difference_update(result.log_id for result in results)
        self.doubled += len(results) - (before - len(self.open))
        self.reported += len(results)
        self.changed.set()
        return encode_envelope(200)

    async def wait_below(self, most: int) -> None:
        while len(self.open) > most:
            self.changed.clear()
            await self.changed.wait()


async def _measure(load: Load) -> Figures:
    with tempfile.TemporaryDirectory(prefix="jobwheel-bench-") as folder:
        admin = _Admin(secrets.token_urlsafe(24))
        async with (
            _serving(admin) as admin_port,
            _client() as client,
            _executor(admin_port, admin.headers[TOKEN_HEADER], Path(folder)) as (pid, url),
        ):
            async with asyncio.timeout(_TIMEOUT_S):
                await admin.registered.wait()
            await SystemClock().wait(_SETTLE_S)
            idle_mib = resident_mib(pid)
            run = _Run(load, admin, client, url, pid)
            figures = {**await run.of("async", 1), **await run.of("sync", 1 << 40)}
    return {**figures, "rss_mib": round(idle_mib, 1), "lost": len(admin.open), "doubled": admin.doubled}


@dataclass(frozen=True, slots=True)
class _Run:
    load: Load
    admin: _Admin
    client: WireClient
    url: str
    pid: int

    async def of(self, kind: str, first_id: int) -> Figures:
        """Keep the executor busy with one kind of handler, and look at it after the warm-up."""
        clock, numbers = SystemClock(), itertools.count(first_id)
        async with asyncio.TaskGroup() as group:
            senders = [group.create_task(self._send(kind, numbers)) for _ in range(_SENDERS)]
            await clock.wait(self.load.warm_up_s)
            beats: list[float] = []
            beating = group.create_task(self._beat(beats))
            reported, cpu, began_s = self.admin.reported, cpu_s(self.pid), time.perf_counter()
            await clock.wait(self.load.seconds)
            ran, took_s = self.admin.reported - reported, time.perf_counter() - began_s
            used_s = cpu_s(self.pid) - cpu
            for task in (*senders, beating):
                task.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TIMEOUT_S):
                await self.admin.wait_below(0)
        return {
            f"{kind}_runs_per_s": round(ran / took_s, 1),
            f"{kind}_cpu_us_per_run": round(used_s / max(1, ran) * 1e6, 1),
            f"{kind}_beat_p99_ms" if kind == "sync" else "beat_p99_ms": _p99_ms(beats),
        }

    async def _send(self, kind: str, numbers: Iterator[int]) -> None:
        admin, url = self.admin, join_url(self.url, BATCH_PATH)
        while True:
            await admin.wait_below(_UNDER_WAY)
            ids = [next(numbers) for _ in range(_IN_REQUEST)]
            admin.open.update(ids)
            body = encode_batch([self._request(kind, log_id) for log_id in ids])
            # Shielded: what was sent is to be known, also at the end.
            reply = await asyncio.shield(self.client.post(url, body, admin.headers, _TIMEOUT_S))
            answers = decode_batch_reply(decode_envelope(reply.body), len(ids))
            refused = [log_id for log_id, answer in zip(ids, answers, strict=True) if not _is_yes(answer)]
            admin.open.difference_update(refused)

    def _request(self, kind: str, log_id: int) -> TriggerRequest:
        return TriggerRequest(
            job_id=log_id % self.load.jobs + 1,
            log_id=log_id,
            executor_handler=f"{kind}Nothing",
            executor_block_strategy="SERIAL_EXECUTION",
            log_date_time=int(time.time()) * 1000,
            glue_type="BEAN",
            broadcast_total=1,
        )

    async def _beat(self, took_s: list[float]) -> None:
        clock, url = SystemClock(), join_url(self.url, "/beat")
        while True:
            began_s = time.perf_counter()
            await self.client.post(url, b"{}", self.admin.headers, _TIMEOUT_S)
            took_s.append(time.perf_counter() - began_s)
            await clock.wait(_BEAT_EVERY_S)


def _is_yes(answer: object) -> bool:
    return isinstance(answer, Envelope) and answer.ok


def _p99_ms(took_s: list[float]) -> float:
    return round(statistics.quantiles(took_s, n=100)[98] * 1000, 1) if len(took_s) > 1 else 0.0


@contextlib.asynccontextmanager
async def _serving(admin: _Admin) -> AsyncIterator[int]:
    listener = listen("127.0.0.1", 0)
    routes = {"/api/registry": admin.registry, "/api/registryRemove": admin.registry, "/api/callback": admin.callback}
    server = HttpServer("bench.admin", WireApp(routes), listener, SystemClock())
    await server.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def _client() -> AsyncIterator[WireClient]:
    client = WireClient(SystemClock())
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


@contextlib.asynccontextmanager
async def _executor(admin_port: int, token: str, folder: Path) -> AsyncIterator[tuple[int, str]]:
    port = free_port()
    arguments = [str(port), f"http://127.0.0.1:{admin_port}", token, str(folder / "executions"), "bench"]
    command = [sys.executable, "-m", "benchmarks.sdk_executor", *arguments]
    process = await asyncio.to_thread(subprocess.Popen, command)
    try:
        yield process.pid, f"http://127.0.0.1:{port}/"
    finally:
        # Beside the loop, which has to answer its last requests.
        await asyncio.to_thread(stop, process)


def main() -> int:
    return run_alone(
        __doc__, Load(), measure, {"seconds": "how long each kind of handler is looked at", "jobs": "jobs side by side"}
    )


if __name__ == "__main__":
    sys.exit(main())
