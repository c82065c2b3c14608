"""What users hold: an executor with its handlers."""

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from jobwheel.executor.background import ExecutorThread, SignalWait, before_exit, short_turns
from jobwheel.executor.built_in import register_built_in
from jobwheel.executor.child_setup import refuse_in_child
from jobwheel.executor.errors import HandlerError, NotStartedError
from jobwheel.executor.handler_table import HandlerTable, Isolation
from jobwheel.executor.handlers import HandlerFunction, HandlerObject, Hook
from jobwheel.executor.runtime import ExecutorRuntime
from jobwheel.executor.server import ExecutorApp
from jobwheel.executor.settings import ExecutorSettings, resolve
from jobwheel.executor.turn import Turn
from jobwheel.executor.wsgi import ExecutorWsgiApp
from jobwheel.kernel.clock import Clock, SystemClock
from jobwheel.kernel.logging import configure, get_logger
from jobwheel.wire.batch import BATCH_PATH

log = get_logger(__name__)

Function = TypeVar("Function", bound=HandlerFunction)

_PATHS = ("/beat", "/idleBeat", "/run", "/trigger", BATCH_PATH, "/kill", "/runStatus", "/log")


class Executor:
    """A process's part in the platform: it registers with admins under an app name and runs the jobs they send.

    Arguments go before `JOBWHEEL_EXECUTOR_*` in the environment, these before the file that `config` names, and this
    before the defaults. Making one starts nothing. Its server and its calls live in a thread of their own, each job
    runs in a thread of its own, so that nothing a handler does stops the heartbeat.

    Args:
        app_name: the group's name. Empty: nothing is registered.
        admin: the admins' base URLs; every one is told of this executor.
        access_token: one, or several during a rotation: all are accepted, the first is sent.
        address: what to register, if it cannot be found out, such as `http://10.0.0.7:9999/`.
        ip: what to register, with the port.
        host: what to listen on. Without a token only loopback is allowed.
        port: where to listen; 0 or less: the next free port from 9999 up.
        log_path: the folder of run logs and of results that wait for an admin.
        dialect: what the admins speak: A (XXL-JOB 2.2), B (2.3 to 3.4), C (3.5 and later); `auto`: learnt from each.
        config: a TOML file of settings by these names; not set: the one that `JOBWHEEL_EXECUTOR_CONFIG` names, if any.
        options: the rest of `ExecutorSettings`: `access_token_file`, `network`, `log_retention_days`, `log_limit_mb`,
            `heartbeat_s`, `queue_limit`, `timeout_s`, `stop_deadline_s`, `idle_s`, `grace_s`, `embedded_server`,
            `enabled`, `tls_certificate`, `tls_key`, `ca_file`, `scripts_enabled`, `http_job_hosts`,
            `command_job_programs`, `sample_handlers`.

    Raises:
        SettingError: a setting cannot work; names it and what is valid.
    """

    def __init__(  # noqa: PLR0913 - what nearly every user sets, by name
        self,
        app_name: str | None = None,
        admin: str | Sequence[str] | None = None,
        access_token: str | Sequence[str] | None = None,
        *,
        address: str | None = None,
        ip: str | None = None,
        host: str | None = None,
        port: int | None = None,
        log_path: str | Path | None = None,
        dialect: str | None = None,
        config: str | Path | None = None,
        clock: Clock | None = None,
        **options: object,
    ) -> None:
        arguments = {
            "app_name": app_name,
            "admin": admin,
            "access_token": access_token,
            "address": address,
            "ip": ip,
            "host": host,
            "port": port,
            "log_path": log_path,
            "dialect": dialect,
            "config": config,
            **options,
        }
        self.settings: ExecutorSettings = resolve(arguments, os.environ)
        self._clock = clock or SystemClock()
        self._handlers = HandlerTable()
        register_built_in(self._handlers, self.settings, self._clock)
        self._app = ExecutorApp(_PATHS)
        self._wsgi_app = ExecutorWsgiApp(self._app)
        self._change = threading.Lock()
        self._thread: ExecutorThread | None = None
        self._stops_at_exit_of = 0

    def job(
        self,
        name: str,
        *,
        isolation: Isolation = "thread",
        init: Hook | None = None,
        destroy: Hook | None = None,
    ) -> Callable[[Function], Function]:
        """Register the decorated function as the handler `name`; the function itself stays as it is.

        The arguments are those of `register`.

        Raises:
            HandlerError: as for `register`.
        """
        if callable(name):
            raise HandlerError(getattr(name, "__name__", name), 'needs a name: write @executor.job("name")')

        def decorate(function: Function) -> Function:
            self.register(name, function, isolation=isolation, init=init, destroy=destroy)
            return function

        return decorate

    def register(
        self,
        name: str,
        handler: HandlerFunction | HandlerObject,
        *,
        isolation: Isolation = "thread",
        init: Hook | None = None,
        destroy: Hook | None = None,
    ) -> None:
        """Register a handler: a function, or an object with `execute` and perhaps `init` and `destroy`.

        The function, or `execute`, is sync or async. It takes nothing, or the `JobContext`, or the job's parameter in
        the type that it declares, or both in this order.

        Args:
            name: what jobs call it.
            handler: it is shared by all jobs that name it; each of them has a worker, with a thread of its own.
            isolation: "thread", or "process" for a child process of each worker, which can be ended for sure.
            init: called when a worker begins with the handler, in the worker's thread or child process. What it raises
                fails the run, and the next run calls it again.
            destroy: called when a worker that has begun ends: after `idle_s` without a run, or when the executor stops.

        Raises:
            HandlerError: the name is empty or taken; the handler has parameters that nobody gives it, or declares a
                type that no parameter can be read into; a child process cannot import it.
        """
        self._handlers.register(name, handler, isolation=isolation, init=init, destroy=destroy)

    @property
    def handlers(self) -> list[str]:
        """The names of the handlers."""
        return self._handlers.names

    @property
    def asgi_app(self) -> ExecutorApp:
        """The executor's HTTP API, to mount in an ASGI application.

        Then with `embedded_server=False` and the `address` where it is reached. One process alone may serve that
        address: runs are known to the process that took them.
        """
        return self._app

    @property
    def wsgi_app(self) -> ExecutorWsgiApp:
        """The same for a WSGI application. Its servers stop no executor: see `start_in_background`."""
        return self._wsgi_app

    @property
    def started(self) -> bool:
        thread = self._thread
        return thread is not None and thread.alive

    @property
    def stands_by(self) -> bool:
        """Whether it waits to serve, since another process of the application does, on the same port and log path."""
        thread = self._thread
        return thread is not None and thread.alive and thread.stands_by

    @property
    def instance(self) -> str:
        """The id of this start.

        Raises:
            NotStartedError: not started.
        """
        return self._runtime("the instance").instance

    @property
    def port(self) -> int:
        """Where the server listens.

        Raises:
            NotStartedError: not started, or without a server.
        """
        port = self._runtime("the port").port
        if port is None:
            raise NotStartedError("the port of the embedded server")
        return port

    @property
    def address(self) -> str | None:
        """What is registered; None if nothing is.

        Raises:
            NotStartedError: not started.
        """
        return self._runtime("the address").address

    def _runtime(self, what: str) -> ExecutorRuntime:
        if self._thread is None or not self.started:
            raise NotStartedError(what)
        return self._thread.runtime

    def _make_runtime(self) -> ExecutorRuntime:
        return ExecutorRuntime(self.settings, self._handlers, self._app, self._clock)

    async def start(self) -> None:
        """Start; returns when requests are answered, or when it stands by. Again: nothing.

        Raises:
            HandlerError: a child process could not import a handler that is to run in one.
            BindError: the port is taken.
            StorageError: the log folder cannot be written.
        """
        await asyncio.to_thread(self.start_in_background)

    async def stop(self) -> None:
        """Stop gracefully; returns when all is over, after `stop_deadline_s` at most or a moment more."""
        await asyncio.to_thread(self.stop_in_background)

    @contextlib.asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncIterator[None]:
        """Start at the beginning of the block and stop at its end.

        It is a lifespan as Starlette and FastAPI take it, `FastAPI(lifespan=executor.lifespan)`, and can be entered
        inside one of your own: `async with executor.lifespan():`.

        Raises:
            JobwheelError: as `start`.
        """
        try:
            # Inside: a start that is cancelled goes on in its thread, and has to be undone.
            await self.start()
            yield
        finally:
            await self.stop()

    def start_in_background(self, *, stop_at_exit: bool = False) -> None:
        """As `start`, for who has no event loop.

        Args:
            stop_at_exit: stop gracefully when the program ends by itself, which it then does `stop_deadline_s` later
                at most. For servers that tell an application nothing of their end, as those of WSGI.
        """
        refuse_in_child()
        if stop_at_exit and self._stops_at_exit_of != os.getpid():
            self._stops_at_exit_of = os.getpid()
            before_exit(self.stop_in_background)
        with self._change:
            if self.started:
                return
            if not self.settings.enabled:
                log.info("executor.disabled", setting="enabled")
                return
            self._handlers.check()
            thread = ExecutorThread(self._make_runtime, Turn(self.settings, self._clock))
            thread.start_and_wait()
            self._thread = thread

    def stop_in_background(self) -> None:
        """As `stop`, for who has no event loop."""
        with self._change:
            if self._thread is None:
                return
            try:
                self._thread.stop_and_wait()
            finally:
                self._thread = None

    def run(self) -> None:
        """Start, serve until SIGTERM or SIGINT, stop gracefully. A second signal ends the process at once.

        Where the application has set up no logging, the executor's own log goes to standard error.

        Raises:
            JobwheelError: it cannot start.
        """
        if not logging.getLogger().handlers:
            configure()
            logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        with short_turns(), SignalWait() as wait:
            self.start_in_background()
            if self._thread is not None:
                self._thread.on_end(wait.wake)
            wait.until_signal()
            self.stop_in_background()
