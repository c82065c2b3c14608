"""A proxy that breaks a connection at a chosen word, after the word has reached the server, or before."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tests.support.accepting import all_accepted, all_closed


class CuttingProxy:
    """Passes bytes both ways. Once armed, the next client whose bytes hold `word` never gets the answer.

    One that `swallows` keeps the word from the server too. One that `stays_armed` does it to every such client.
    """

    def __init__(self, port: int, word: bytes) -> None:
        self._port = port
        self._word = word
        self.armed = False
        self.stays_armed = False
        self.swallows = False
        self.cuts = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def running(self, port: int = 0) -> AsyncIterator[int]:
        """The port to connect to. At the end every connection is broken, and new ones are refused."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            await all_accepted()
            for task in self._tasks:
                task.cancel()
            for writer in self._open:
                writer.transport.abort()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await all_closed(server)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open.add(writer)
        try:
            await self._pass_all(reader, writer)
        except asyncio.CancelledError:
            # The end of the proxy.
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            self._open.discard(writer)

    async def _pass_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_read, to_write = await asyncio.open_connection("127.0.0.1", self._port)
        except ConnectionError:
            # Nobody is behind it: who asked finds out by the end of the connection.
            writer.close()
            return
        self._open.add(to_write)
        cut = asyncio.Event()
        answers = asyncio.create_task(self._pass_on(to_read, writer, cut))
        try:
            while data := await reader.read(65536):
                if self.armed and self._word in data:
                    self.armed = self.stays_armed
                    self.cuts += 1
                    if self.swallows:
                        return
                    cut.set()
                    to_write.write(data)
                    await to_write.drain()
                    # The server has done it when it answers.
                    await answers
                    return
                to_write.write(data)
                await to_write.drain()
        except ConnectionError:
            pass
        finally:
            answers.cancel()
            self._open.discard(to_write)
            for each in (writer, to_write):
                each.close()
            await asyncio.gather(answers, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: asyncio.Event) -> None:
        while data := await reader.read(65536):
            if cut.is_set():
                return
            writer.write(data)
            await writer.drain()
        writer.close()
