"""The admin's process: start, signals, graceful stop."""

import asyncio
import contextlib
import gc
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, ClassVar, Final, TypeVar

from jobwheel.admin.build import Admin, build_admin
from jobwheel.admin.settings import LoadedSettings, Settings, make_data_dir
from jobwheel.kernel.clock import Clock, SystemClock
from jobwheel.kernel.errors import JobwheelError
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.memory import return_large_pieces, share_arenas
from jobwheel.kernel.service import ServiceGroup
from jobwheel.wire.http_server import HttpOptions, HttpServer, listen

log = get_logger(__name__)

Started = TypeVar("Started")

_GRACE_S: Final = 1
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class CannotListenError(JobwheelError):
    """The admin cannot listen where it was told to."""

    code: ClassVar[str] = "cannot_listen"

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"cannot listen on {host} port {port}: {reason}; JOBWHEEL_HOST and JOBWHEEL_PORT say where to", field="port"
        )


class AdminServer:
    """One admin in this process.

    Args:
        loaded: the settings with what the operator should be told of them.
        announce: gets each line that is meant for the terminal alone (address, first password): never the log.
        clock: what everything in it reads the time from.
    """

    def __init__(self, loaded: LoadedSettings, announce: Callable[[str], None], clock: Clock | None = None) -> None:
        self._loaded = loaded
        self._announce = announce
        self._clock = clock or SystemClock()
        self._stop = asyncio.Event()

    def request_stop(self) -> None:
        """Begin the graceful stop; a start under way is broken off. Call from the server's event loop."""
        self._stop.set()

    async def run(self) -> None:
        """Serve until `request_stop`, SIGTERM or SIGINT; return when everything is stopped.

        A second signal, whenever it comes, ends the process at once.

        Raises:
            JobwheelError: it cannot start; nothing is left running.
        """
        share_arenas()
        return_large_pieces()
        settings = self._loaded.settings
        for warning in self._loaded.warnings:
            log.warning("settings.warning", warning=warning)
        make_data_dir(settings)
        # Bound first: whoever starts a second admin by mistake learns it before the database is touched.
        listener = _listen(settings)
        with contextlib.closing(listener), _stopping_on_signals(self.request_stop):
            admin = await self._unless_stopped(build_admin(settings, self._clock, apart=True))
            if admin is not None:
                try:
                    await self._serve(admin, listener)
                finally:
                    await admin.database.stop()
        log.info("admin.stopped")

    async def _serve(self, admin: Admin, listener: socket.socket) -> None:
        settings = self._loaded.settings
        options = HttpOptions(
            grace_s=_GRACE_S,
            trusted_proxies=tuple(settings.trusted_proxies.split(",")) if settings.trusted_proxies else (),
            certificate=settings.tls_certificate,
            key=settings.tls_key,
        )
        http = HttpServer("admin.http", admin.app, listener, self._clock, options)
        # Stopped in the opposite order: nobody waits for a run any more, then nobody gets in (executors keep their
        # results and deliver them later), then runs in flight land, and what is pending is handed over.
        everything = ServiceGroup("admin", self._clock, [admin.workers, http, admin.waits])
        await self._unless_stopped(everything.start())
        if not everything.running:
            return
        try:
            self._tell(admin, listener)
            log.info("admin.started", address=_address(settings, listener))
            # What the program itself is made of stays: without it a full collection, which holds up all that is due,
            # looks at what came since alone.
            gc.collect()
            gc.freeze()
            await self._stop.wait()
            log.info("admin.stopping")
        finally:
            await everything.stop()

    async def _unless_stopped(self, start: Coroutine[Any, Any, Started]) -> Started | None:
        """Do a part of the start; None: a stop was asked for meanwhile, and the part has undone what it had begun."""
        starting = asyncio.ensure_future(start)
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            is_broken_off = starting.cancel()
            if is_broken_off:
                log.info("admin.stopping", during="start")
                await asyncio.wait({starting})
        if is_broken_off and (starting.cancelled() or starting.exception() is not None):
            return None
        return starting.result()

    def _tell(self, admin: Admin, listener: socket.socket) -> None:
        for warning in admin.installation.warnings:
            log.warning("installation.warning", warning=warning)
        password = admin.installation.first_password
        if password is not None:
            self._announce(
                f"First start: sign in as admin with the password {password.reveal()} (shown this once only)"
            )
        self._announce(f"Jobwheel listens on {_address(self._loaded.settings, listener)}")


def _listen(settings: Settings) -> socket.socket:
    try:
        return listen(settings.host, settings.port)
    except OSError as error:
        raise CannotListenError(settings.host, settings.port, error.strerror or str(error)) from error


def _address(settings: Settings, listener: socket.socket) -> str:
    scheme = "https" if settings.tls_certificate else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{scheme}://{host}:{listener.getsockname()[1]}"


@contextlib.contextmanager
def _stopping_on_signals(request_stop: Callable[[], None]) -> Iterator[None]:
    """Ask for the stop at the first signal. From then on signals are the system's, which ends the process at once."""
    loop = asyncio.get_running_loop()
    came = False

    def give_back(*_: object) -> None:
        # Between two steps of the main thread, and not when the loop has its turn: it may hang in one of them.
        nonlocal came
        came = True
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    for number in _SIGNALS:
        # The loop's own handler does nothing; it hears of the signal through a socket, so that none comes too late.
        loop.add_signal_handler(number, request_stop)
        signal.signal(number, give_back)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        if came:
            give_back()
