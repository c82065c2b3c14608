"""An executor at work: its parts, put together for one start."""

import asyncio
import uuid
from typing import Final

from jobwheel import __version__
from jobwheel.executor.address import RegisteredAddress, choose_address
from jobwheel.executor.admin_client import AdminClient
from jobwheel.executor.callbacks import CallbackSender
from jobwheel.executor.context import current_run_log
from jobwheel.executor.errors import StorageError
from jobwheel.executor.execution import JobRunner
from jobwheel.executor.gate import RunGate
from jobwheel.executor.handler_table import HandlerTable
from jobwheel.executor.ledger import RunLedger
from jobwheel.executor.log_capture import LogCapture
from jobwheel.executor.registration import Registration
from jobwheel.executor.routes import ExecutorRoutes
from jobwheel.executor.run_log import RunLogFolder
from jobwheel.executor.server import ExecutorApp, bind
from jobwheel.executor.settings import ExecutorSettings
from jobwheel.executor.spool import Spool
from jobwheel.executor.tls import check_certificate, client_context
from jobwheel.executor.workers import WorkerPool
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.service import Service
from jobwheel.wire.client import WireClient
from jobwheel.wire.http_server import HttpOptions, HttpServer
from jobwheel.wire.messages import Features, Result
from jobwheel.wire.server import WireApp
from jobwheel.wire.tokens import AccessTokens

log = get_logger(__name__)

# What of the stop's deadline is kept for sending the last results.
_FLUSH_SHARE: Final = 0.2
_MOST_FLUSH_S: Final = 5.0


class ExecutorRuntime(Service):
    """One start of an executor, in the loop that runs it. Not started a second time: each start is an instance."""

    def __init__(self, settings: ExecutorSettings, handlers: HandlerTable, app: ExecutorApp, clock: Clock) -> None:
        super().__init__("executor", clock)
        self.instance = str(uuid.uuid4())
        self._settings = settings
        self._app = app
        # From here on wherever the process goes: a handler may change the working directory.
        self._log_path = settings.log_path.absolute()
        self._folder = RunLogFolder(self._log_path, clock)
        self._ledger = RunLedger(clock)
        self._spool = Spool(self._log_path / "spool", self.instance)
        self._runner = JobRunner(self._settle)
        self._pool = WorkerPool(self._runner.run_one, clock, settings.queue_limit, settings.idle_s)
        self._gate = RunGate(self.instance, handlers, self._ledger, self._folder, self._pool)
        self._capture = LogCapture(current_run_log)
        self._client = WireClient(clock, connect_timeout_s=settings.timeout_s, ssl_context=client_context(settings))
        self._admin = AdminClient(settings, self._client)
        self._sender = CallbackSender(self._spool, self._ledger, self._admin, settings.admins, clock)
        self._server: HttpServer | None = None
        self._registration: Registration | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._notified = False
        self._draining = False
        self.port: int | None = None
        self.address: str | None = None

    def features(self) -> Features:
        """What is told with each beat."""
        return Features(
            instance=self.instance,
            version=__version__,
            batch=True,
            draining=self._draining,
            running=self._pool.running,
            queued=self._pool.queued,
            spooled=self._spool.pending,
        )

    async def on_start(self) -> None:
        self._loop = asyncio.get_running_loop()
        check_certificate(self._settings)
        self._make_folder()
        self._spool.open()
        self._spool.on_put = self._notify
        self._capture.install()
        await self._client.start()
        if self._settings.admins:
            await self._sender.start()
        self._app.serve(self._wire_app())
        if self._settings.embedded_server:
            await self._start_server()
        await self._start_registration()

    def _make_folder(self) -> None:
        try:
            self._log_path.mkdir(mode=0o750, parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(self._log_path, error.strerror or str(error)) from error

    def _wire_app(self) -> WireApp:
        tokens = AccessTokens(self._settings.access_tokens)
        routes = ExecutorRoutes(self.instance, tokens, self._gate, self._pool, self._ledger, self._folder)
        return WireApp(routes.table())

    async def _start_server(self) -> None:
        listener = bind(self._settings.host, self._settings.port)
        self.port = int(listener.getsockname()[1])
        options = HttpOptions(certificate=self._settings.tls_certificate, key=self._settings.tls_key)
        self._server = HttpServer("executor.server", self._app, listener, self.clock, options)
        await self._server.start()
        log.info("executor.listening", host=self._settings.host, port=self.port, log_path=self._log_path)

    async def _start_registration(self) -> None:
        settings = self._settings
        if not settings.registers:
            missing = "admin" if settings.app_name else "app_name"
            log.warning("executor.registers_nowhere", reason=f"{missing} is not set")
            return
        chosen = await asyncio.to_thread(choose_address, settings, self.port or 0)
        self.address = chosen.url
        _tell(settings.app_name, chosen)
        self._registration = Registration(
            self._admin, settings, chosen.url, self.features, self.clock, self._sender.retry_now
        )
        await self._registration.start()

    async def on_stop(self) -> None:
        """Leave the registry, take nothing new, finish what is accepted until the deadline, report, end."""
        deadline = self.clock.monotonic() + self._settings.stop_deadline_s
        self._draining = True
        self._gate.close()
        if self._registration is not None:
            await self._registration.stop()
        await self._finish_runs(deadline)
        if self._sender.running:
            await self._sender.flush(max(0.5, deadline - self.clock.monotonic()))
            await self._sender.stop()
        self._app.serve(None)
        if self._server is not None:
            await self._server.stop()
        await self._client.stop()
        self._spool.on_put = _nothing
        self._spool.close()
        self._capture.remove()

    async def _finish_runs(self, deadline: float) -> None:
        kept = min(_MOST_FLUSH_S, self._settings.stop_deadline_s * _FLUSH_SHARE)
        self._pool.close()
        if await asyncio.to_thread(self._pool.join, deadline - kept - self.clock.monotonic()):
            return
        queued, running = self._pool.abandon()
        log.error("executor.runs_not_finished", running=len(running), queued=len(queued))
        for run in queued:
            self._runner.give_up(run, "the executor stopped before this run began")
        for run in running:
            reason = "the executor stopped while this run was under way; how it ended is not known"
            self._runner.give_up(run, reason)

    def _settle(self, result: Result) -> None:
        """Called in worker threads: durable first, known as over afterwards."""
        key = (result.log_id, result.log_date_time)
        if self._settings.admins:
            self._spool.put(result)
        self._ledger.finish(key)
        if not self._settings.admins:
            self._ledger.report([key])

    def _notify(self) -> None:
        """Wake the sender, once for however many results are put until it looks."""
        if not self._notified and self._loop is not None:
            self._notified = True
            self._loop.call_soon_threadsafe(self._wake_sender)

    def _wake_sender(self) -> None:
        self._notified = False
        self._sender.notify()


def _tell(app_name: str, chosen: RegisteredAddress) -> None:
    log.info("executor.address_chosen", app_name=app_name, address=chosen.url, reason=chosen.reason)
    if chosen.warning is not None:
        log.warning("executor.address_doubtful", address=chosen.url, reason=chosen.warning)


def _nothing() -> None:
    pass
