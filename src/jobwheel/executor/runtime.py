"""An executor at work: its parts, put together for one start."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Final

from jobwheel import __version__
from jobwheel.executor.address import RegisteredAddress, choose_address
from jobwheel.executor.admin_client import AdminClient
from jobwheel.executor.callbacks import CallbackSender
from jobwheel.executor.context import current_run_log
from jobwheel.executor.control import RunControl
from jobwheel.executor.dead_letters import DeadLetters
from jobwheel.executor.disk_threads import DiskThreads
from jobwheel.executor.errors import StorageError
from jobwheel.executor.execution import JobRunner
from jobwheel.executor.gate import RunGate
from jobwheel.executor.handler_table import HandlerTable
from jobwheel.executor.ledger import RunLedger
from jobwheel.executor.log_capture import LogCapture
from jobwheel.executor.log_retention import LogCleaner, Retention
from jobwheel.executor.progress import ProgressSender
from jobwheel.executor.registration import Registration
from jobwheel.executor.routes import ExecutorRoutes
from jobwheel.executor.run_log import RunLogFolder
from jobwheel.executor.run_states import RunStates
from jobwheel.executor.script_files import ScriptFiles
from jobwheel.executor.scripts import Scripts
from jobwheel.executor.server import ExecutorApp, bind
from jobwheel.executor.settings import ExecutorSettings
from jobwheel.executor.spool import Spool
from jobwheel.executor.tls import check_certificate, client_context
from jobwheel.executor.workers import WorkerPool
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.service import Service
from jobwheel.wire.client import WireClient
from jobwheel.wire.codec import envelope_value
from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.http_server import HttpOptions, HttpServer
from jobwheel.wire.messages import AdminFeatures, Envelope, Features, RegistryReply, Result
from jobwheel.wire.server import WireApp
from jobwheel.wire.tokens import AccessTokens

log = get_logger(__name__)

# What of the stop's deadline is kept for ending what does not end by itself, and for sending the last results, each.
_SHARE: Final = 0.2
_MOST_FLUSH_S: Final = 5.0
_DISK_THREADS: Final = 4


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
        self._disk = DiskThreads("jobwheel-requests", _DISK_THREADS)
        self._ledger = RunLedger(clock)
        self._spool = Spool(self._log_path / "spool", self.instance)
        self._script_files = ScriptFiles(self._log_path / "gluesource")
        self._client = WireClient(clock, connect_timeout_s=settings.timeout_s, ssl_context=client_context(settings))
        self._admin = AdminClient(settings, self._client)
        self._progress = ProgressSender(self._admin, clock)
        self._runner = JobRunner(self._settle, clock, settings.grace_s, self._progress.report)
        self._pool = WorkerPool(self._runner.run_one, clock, settings.queue_limit, settings.idle_s)
        self._control = RunControl(self._pool, self._runner)
        self._runner.on_left_alone = self._control.go_on_without
        scripts = Scripts(self._script_files, clock, enabled=settings.scripts_enabled)
        self._gate = RunGate(self.instance, handlers, scripts, self._ledger, self._folder, self._pool, self._control)
        self._capture = LogCapture(current_run_log)
        retention = Retention(settings.log_retention_days, settings.log_limit_mb * 1024 * 1024)
        self._cleaner = LogCleaner(str(self._log_path), retention, self._ledger.is_open, clock)
        letters = DeadLetters(self._log_path / "dead-letters.jsonl", clock)
        self._sender = CallbackSender(self._spool, self._ledger, self._admin, settings.admins, letters, clock)
        self._server: HttpServer | None = None
        self._registration: Registration | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._notified = False
        self.port: int | None = None
        self.address: str | None = None

    def features(self) -> Features:
        """What is told with each beat."""
        return Features(
            instance=self.instance,
            version=__version__,
            batch=True,
            kill_by_log=True,
            status=True,
            draining=self._gate.draining,
            running=self._pool.running,
            queued=self._pool.queued,
            spooled=self._spool.pending,
            abandoned=self._pool.abandoned,
        )

    async def on_start(self) -> None:
        self._loop = asyncio.get_running_loop()
        check_certificate(self._settings)
        self._make_folder()
        if self._settings.scripts_enabled:
            self._script_files.open()
        self._spool.open()
        self._spool.on_put = self._notify
        self._capture.install()
        await self._cleaner.start()
        await self._client.start()
        if self._settings.admins:
            await self._sender.start()
            await self._progress.start()
        self._app.serve(self._wire_app(), local_only=not self._settings.access_tokens)
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
        states = RunStates(self._pool, self._ledger, self._spool)
        routes = ExecutorRoutes(self.instance, tokens, self._gate, self._control, states, self._folder, self._disk)
        return WireApp(routes.table(), routes.refusal)

    async def _start_server(self) -> None:
        listener = bind(self._settings.host, self._settings.port)
        self.port = int(listener.getsockname()[1])
        options = HttpOptions(
            # What a proxy on this machine passes on comes from elsewhere, and is refused where there is no token.
            trusted_proxies=("127.0.0.1", "::1"),
            certificate=self._settings.tls_certificate,
            key=self._settings.tls_key,
        )
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
            self._admin, settings, chosen.url, self.features, self.clock, self._on_contact
        )
        await self._registration.start()

    def _on_contact(self, admin: str, answer: Envelope | None) -> bool:
        """An admin has answered a beat, or not (None); says whether it drains this executor."""
        if answer is not None:
            self._sender.retry_now()
        features = _features(answer)
        if features is not None:
            self._progress.want(admin, wanted=features.progress)
        # One that is silent sends no runs, and must not hold up those of the others for as long as it is away.
        drains = features is not None and features.drain
        if self._gate.drain(admin, draining=drains):
            log.warning("executor.draining" if drains else "executor.drained_no_more", admin=admin)
        return drains

    async def on_stop(self) -> None:
        """Leave the registry, take nothing new, finish what is accepted, end what is left, report; by the deadline."""
        deadline = self.clock.monotonic() + self._settings.stop_deadline_s
        self._gate.refuse()
        if self._registration is not None:
            await _stopped("registration", self._registration.stop)
        # Only now: it waits for who makes a log, and on a disk that hangs nobody would hear of the stop.
        self._gate.close()
        await _stopped("runs", lambda: self._finish_runs(deadline))
        await _stopped("progress", self._progress.stop)
        if self._sender.running:
            await _stopped("results", lambda: self._sender.flush(max(0.5, deadline - self.clock.monotonic())))
            await _stopped("callbacks", self._sender.stop)
        self._app.serve(None)
        if self._server is not None:
            await _stopped("server", self._server.stop)
        self._disk.close()
        await _stopped("client", self._client.stop)
        await _stopped("cleaner", self._cleaner.stop)
        await _stopped("spool", self._close_spool)
        self._capture.remove()

    async def _close_spool(self) -> None:
        self._spool.on_put = _nothing
        self._spool.close()

    async def _finish_runs(self, deadline: float) -> None:
        share = self._settings.stop_deadline_s * _SHARE
        flush_s, grace_s = min(_MOST_FLUSH_S, share), min(self._settings.grace_s, share)
        self._pool.close()
        if not await asyncio.to_thread(self._pool.join, deadline - flush_s - grace_s - self.clock.monotonic()):
            self._control.stop_all(grace_s)
            await asyncio.to_thread(self._pool.join, deadline - flush_s - self.clock.monotonic())
            self._control.give_up_all()
        await asyncio.to_thread(self._runner.close)

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


def _features(answer: Envelope | None) -> AdminFeatures | None:
    """What an admin of ours wishes; those of another make have no wishes."""
    try:
        return None if answer is None else envelope_value(answer, RegistryReply).features
    except MalformedMessageError:
        return None


def _tell(app_name: str, chosen: RegisteredAddress) -> None:
    log.info("executor.address_chosen", app_name=app_name, address=chosen.url, reason=chosen.reason)
    if chosen.warning is not None:
        log.warning("executor.address_doubtful", address=chosen.url, reason=chosen.warning)


async def _stopped(part: str, stop: Callable[[], Awaitable[None]]) -> None:
    """Stop one part. What it raises must not leave the others open: it is logged."""
    try:
        await stop()
    except Exception:
        log.exception("executor.part_not_stopped", part=part)


def _nothing() -> None:
    pass
