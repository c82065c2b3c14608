"""Executors on the reference's own library, each a JVM."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.http_peer import unused_port
from tests.support.live_admin import seen
from tests.support.reference_library import ReferenceLibrary

_READY_S: Final = 60
_STOP_S: Final = 20


@dataclass
class ReferenceExecutor:
    """A running one, registered as `address` by itself."""

    process: asyncio.subprocess.Process
    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        """End it at once; return when it has ended."""
        self.process.kill()
        await self.process.communicate()

    async def stop(self) -> None:
        """Let it end as an operator does; return when it has ended.

        Raises:
            TimeoutError: it does not end.
        """
        self.process.terminate()
        await asyncio.wait_for(self.process.communicate(), _STOP_S)


@dataclass(frozen=True)
class ReferenceExecutors:
    """Starts them, of the app name `orders`, with the run logs in `folder`."""

    library: ReferenceLibrary
    folder: Path

    @contextlib.asynccontextmanager
    async def start(
        self, version: str, admin_url: str, token: str, port: int | None = None
    ) -> AsyncIterator[ReferenceExecutor]:
        """One that is ready to register; killed at the end if it still runs."""
        port = port or unused_port()
        arguments = [admin_url, token, "orders", str(port), str(self.folder / f"runs-{port}")]
        with (self.folder / f"said-{port}").open("ab") as said:
            process = await asyncio.create_subprocess_exec(
                *self.library.executor(version), *arguments, stdout=asyncio.subprocess.PIPE, stderr=said
            )
        try:
            await asyncio.wait_for(_ready(process), _READY_S)
            # The library listens in a thread of its own, which may come later.
            await seen(lambda: _listens(port), _READY_S)
            # One that listened on all interfaces would listen here as well.
            assert not await _listens(port, "127.0.0.2"), "it does not listen on the loopback interface alone"
            yield ReferenceExecutor(process, port)
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


async def _ready(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    while (line := await process.stdout.readline()).strip() != b"ready":
        assert line, f"it ended with {await process.wait()}"


async def _listens(port: int, host: str = "127.0.0.1") -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return False
    writer.close()
    await writer.wait_closed()
    return True
