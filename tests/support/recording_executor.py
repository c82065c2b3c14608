"""An executor that records what it is told: real HTTP on loopback, and as good or bad an answerer as a test wants.

`tests.support.executor_process` runs it as a process.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.batch import BATCH_PATH
from jobwheel.wire.client import UncertainError, UnreachableError, WireClient
from tests.support.accepting import all_accepted, all_closed

INSTANCE = "7f0c6a52-0000-4000-8000-000000000001"
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. `at_ms` is when it was read, epoch milliseconds."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at_ms: int

    @property
    def log_id(self) -> int:
        return int(self.body["logId"])


_FORGOTTEN = Asked("", {}, {}, 0)

Answer = Callable[["RecordingExecutor", Asked], Awaitable[dict[str, Any] | bytes | None]]
"""An envelope, or raw bytes, or None: the connection is cut without a word."""


@dataclass
class RecordingExecutor:
    """Serves `path` (`/run`, or `/trigger` for a newer one); with `instance` it is one of ours.

    Every run is answered by `answer`, every question before a run by `ask`: alive, and idle if `idle` says so. With
    `reports` an accepted run is called back at once as succeeded. `asked` holds all requests, unless `keeps` is off:
    for more than memory has room for. With `batch` it announces and serves `/runBatch`: each run of a batch is asked
    for by itself, and `batches` holds the log ids of each; raw bytes, or None, as the answer to one are the answer to
    all. `features` is what else it announces; `state` is what it says of each run that it is asked about, and then it
    serves `/runStatus`; with `kills` it serves `/kill`. With `sends_app_name` it names its app name,
    as one that carries its group's token must.
    """

    admin_url: str
    token: str
    answer: "Answer" = field(default_factory=lambda: accept)
    path: str = "/run"
    instance: str | None = None
    app_name: str = "orders"
    reports: bool = True
    idle: bool = True
    batch: bool = False
    keeps: bool = True
    features: dict[str, Any] = field(default_factory=dict)
    state: str | None = None
    kills: bool = False
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    batches: list[list[int]] = field(default_factory=list)
    started: dict[int, Asked] = field(default_factory=dict)
    on_start: Callable[[Asked], None] = lambda _: None
    ask: "Answer" = field(default_factory=lambda: say_how_it_is)
    sends_app_name: bool = False

    async def __aenter__(self) -> Self:
        self._client = WireClient(_CLOCK)
        await self._client.start()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.disappear()
        await self._client.stop()

    async def disappear(self) -> None:
        """Stop serving, as a process that was killed: connections to it are refused from now on."""
        self._server.close()
        await all_accepted()
        for task in list(self._tasks):
            task.cancel()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await all_closed(self._server)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def runs(self) -> list[Asked]:
        """The requests to run something, in the order in which they came."""
        return [asked for asked in self.asked if asked.path in ("/run", "/trigger", BATCH_PATH)]

    async def post(self, name: str, body: object, token: str | None = None) -> dict[str, Any]:
        """Post to the admin's API; its envelope."""
        headers = {"XXL-JOB-ACCESS-TOKEN": self.token if token is None else token}
        if self.sends_app_name:
            headers["XXL-JOB-APPNAME"] = self.app_name
        reply = await self._client.post(f"{self.admin_url}/api/{name}", json.dumps(body).encode(), headers, 8.0)
        answer = json.loads(reply.body)
        assert isinstance(answer, dict)
        return answer

    def registration(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "registryGroup": "EXECUTOR",
            "registryKey": self.app_name,
            "registryValue": self.address,
        }
        if self.instance is not None:
            body["features"] = {"instance": self.instance, "version": "1.0.0", "batch": self.batch, **self.features}
        return body

    async def register(self) -> None:
        answer = await self.post("registry", self.registration())
        assert answer["code"] == 200, answer

    async def leave(self) -> None:
        answer = await self.post("registryRemove", self.registration())
        assert answer["code"] == 200, answer

    async def report(self, log_id: int, code: int = 200, message: str = "done") -> dict[str, Any]:
        """Call a run back."""
        return await self.post(
            "callback", [{"logId": log_id, "logDateTim": 0, "handleCode": code, "handleMsg": message}]
        )

    def spawn(self, work: Awaitable[Any]) -> None:
        """Let something go on beside the requests, until the executor disappears."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            while True:
                answer = await self._answer_all(await _read(reader))
                if answer is None:
                    break
                body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            self._writers.discard(writer)
            self._tasks.discard(task)

    async def _answer_all(self, asked: list[Asked]) -> dict[str, Any] | bytes | None:
        """The envelope of a request, or that of a batch around those of its runs, in their order."""
        if asked[0].path != BATCH_PATH or not self.batch:
            return await self._answer(asked[0])
        if self.keeps:
            self.batches.append([each.log_id for each in asked])
            self.asked += asked
        envelopes: list[dict[str, Any]] = []
        for each in asked:
            answer = await self.answer(self, each)
            if not isinstance(answer, dict):
                return answer
            envelopes.append(answer)
        return self.envelope(data=envelopes, content=envelopes)

    async def _answer(self, asked: Asked) -> dict[str, Any] | bytes | None:
        if self.keeps:
            self.asked.append(asked)
        if asked.path in ("/beat", "/idleBeat"):
            return await self.ask(self, asked)
        if asked.path == "/runStatus" and self.state is not None:
            states = {str(log_id): self.state for log_id in asked.body["logIds"]}
            return self.envelope(data=states, content=states)
        if asked.path == "/kill" and self.kills:
            return self.envelope(msg="told")
        if asked.path != self.path:
            return {"code": 500, "msg": f"invalid request, uri-mapping({asked.path}) not found."}
        return await self.answer(self, asked)

    def envelope(self, code: int = 200, **fields: object) -> dict[str, Any]:
        instance = {} if self.instance is None else {"instance": self.instance}
        return {"code": code, "msg": None, "content": None, **instance, **fields}

    def start(self, asked: Asked) -> bool:
        """What every executor does with a run it takes; False if it has it already."""
        if asked.log_id in self.started:
            return False
        self.started[asked.log_id] = asked if self.keeps else _FORGOTTEN
        self.on_start(asked)
        if self.reports:
            self.spawn(self._deliver(asked.log_id))
        return True

    async def _deliver(self, log_id: int) -> None:
        """Report until it is acknowledged, as every executor does."""
        while True:
            try:
                if (await self.report(log_id))["code"] == 200:
                    return
            except (UnreachableError, UncertainError):
                pass
            await _CLOCK.wait(0.05)


async def _read(reader: asyncio.StreamReader) -> list[Asked]:
    """A request; a batch as one of each of its runs (never empty)."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request_line, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    read, now_ms = json.loads(body or b"{}"), _CLOCK.now()
    bodies = read if isinstance(read, list) and read else [read]
    return [Asked(request_line.split()[1], headers, each, now_ms) for each in bodies]


async def say_how_it_is(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
    """Alive; idle or not."""
    return {"code": 200 if asked.path == "/beat" or executor.idle else 500}


async def accept(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
    """Take the run; one that is known is called so by an executor of ours, and taken for new by others."""
    if not executor.start(asked) and executor.instance is not None:
        return executor.envelope(500, reason="repeated")
    return executor.envelope()


async def take_and_cut(executor: RecordingExecutor, asked: Asked) -> dict[str, Any] | None:
    """Take the run and break the connection off before the answer; answer its resend."""
    return await accept(executor, asked) if not executor.start(asked) else None


async def cut(executor: RecordingExecutor, asked: Asked) -> dict[str, Any] | None:
    """Break off, and never have seen the run; take its resend."""
    return await accept(executor, asked) if asked.body.get("resend") else None


async def hang(executor: RecordingExecutor, asked: Asked) -> None:
    """Take the run and say nothing."""
    executor.start(asked)
    await asyncio.Event().wait()


def refuse(code: int = 500, **fields: object) -> Answer:
    """Refuse every run with this envelope."""

    async def answer(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
        return executor.envelope(code, **fields)

    return answer


async def garbage(executor: RecordingExecutor, asked: Asked) -> bytes:
    return b"<html><body>It works!</body></html>"
