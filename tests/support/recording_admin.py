"""An admin for tests of executors: a real HTTP server on loopback that records what it is told."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import uvicorn

from jobwheel.wire.codec import encode_envelope
from jobwheel.wire.server import WireApp, WireRequest

DEADLINE_S = 8.0
_PATHS = ("registry", "registryRemove", "callback", "progress")


@dataclass(frozen=True, slots=True)
class Recorded:
    path: str
    headers: dict[str, str]
    body: Any


Reply = Callable[[Recorded], bytes]


def success(_: Recorded) -> bytes:
    return encode_envelope(200)


@dataclass
class RecordingAdmin:
    """Answers with success, or as `reply` says. `requests` may be read at any time, `wait_for` waits for more."""

    port: int = 0
    base: str = ""
    reply: Reply = success
    tls: Path | None = None
    """The folder of a certificate, to speak https."""
    requests: list[Recorded] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._server: uvicorn.Server | None = None
        self._pool = ThreadPoolExecutor(thread_name_prefix="recording-admin")

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}{self.base}"

    def start(self) -> Self:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(100)
        self.port = listener.getsockname()[1]
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(listener, ready), name="recording-admin")
        self._thread.start()
        assert ready.wait(DEADLINE_S)
        return self

    def stop(self) -> None:
        if self._thread is not None and self._server is not None:
            self._server.should_exit = True
            self._thread.join()
            self._thread = None

    def close(self) -> None:
        """Stop for good."""
        self.stop()
        self._pool.shutdown()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self, listener: socket.socket, ready: threading.Event) -> None:
        class Server(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                ready.set()

        app = WireApp({f"{self.base}/api/{name}": self._record for name in _PATHS})
        config = uvicorn.Config(
            app, http="httptools", ws="none", lifespan="off", log_config=None, access_log=False, **self._certificate()
        )
        self._server = Server(config)
        asyncio.run(self._server.serve(sockets=[listener]))

    def _certificate(self) -> dict[str, Any]:
        if self.tls is None:
            return {}
        return {"ssl_certfile": self.tls / "certificate.pem", "ssl_keyfile": self.tls / "key.pem"}

    async def _record(self, request: WireRequest) -> bytes:
        name = request.path.rsplit("/", 1)[1]
        recorded = Recorded(name, dict(request.headers), json.loads(request.body))
        # In a thread, so that a reply may wait for what the test does next.
        answer = await asyncio.get_running_loop().run_in_executor(self._pool, self.reply, recorded)
        with self._changed:
            self.requests.append(recorded)
            self._changed.notify_all()
        return answer

    def wait_for(self, condition: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
        """Wait until the condition holds; it is looked at after each request."""
        with self._changed:
            assert self._changed.wait_for(condition, deadline_s), f"not seen in time; requests: {self.requests[-5:]}"

    def wait_for_registration(self) -> None:
        """Wait until an executor has registered: its start does not, and what it runs may be over before."""
        self.wait_for(lambda: bool(self.of("registry")))

    def of(self, name: str) -> list[Recorded]:
        return [recorded for recorded in list(self.requests) if recorded.path == name]

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results of all callbacks, repeats included, in the order they came, as dialect B has them."""
        return [
            {name: value for name, value in item.items() if name != "executeResult"}
            for recorded in self.of("callback")
            for item in recorded.body
        ]

    def result_of(self, log_id: int) -> dict[str, Any]:
        """Wait for the result of a run."""
        self.wait_for(lambda: any(item["logId"] == log_id for item in self.results))
        return next(item for item in self.results if item["logId"] == log_id)

    def wait_for_results(self, log_ids: set[int], deadline_s: float = DEADLINE_S) -> None:
        self.wait_for(lambda: log_ids <= {item["logId"] for item in self.results}, deadline_s)


def wait_until(condition: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
    """Look until the condition holds. For what gives no event to wait for."""
    end = time.perf_counter() + deadline_s
    pause = threading.Event()
    while not condition():
        assert time.perf_counter() < end, "the condition did not come true in time"
        pause.wait(0.005)
