"""Web applications of tests on a port of their own, served in a thread as their users' servers do."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import WSGIApplication

import uvicorn

DEADLINE_S = 8.0


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Nothing: a test shows what it looks at."""


@contextlib.contextmanager
def serve_wsgi(application: WSGIApplication) -> Iterator[int]:
    """Serve the application in threads; gives the port."""
    server = make_server("127.0.0.1", 0, application, _Server, _Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="wsgi-application")
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def serve_asgi(application: Any, port: int = 0) -> Iterator[int]:
    """Serve the application, its lifespan included; gives the port."""
    listener = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(application, lifespan="on", log_config=None, access_log=False, ws="none")
    ready = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready.set()

    server = Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), name="asgi-application")
    thread.start()
    try:
        assert ready.wait(DEADLINE_S)
        yield int(listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
