"""Where a measurement happens: a throw-away database, and admins and executors in processes of their own."""

import asyncio
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
from sqlalchemy import text

from benchmarks.metrics import read_value
from benchmarks.processes import free_port, stop, wait_for_port, wait_until
from jobwheel.admin.store import Connection, schema
from jobwheel.admin.store.database import Database, open_database
from jobwheel.kernel.clock import SystemClock
from tests.support.servers import EMPTY_DATABASE, SERVER_KINDS, running_server

DATABASES: Final = ("sqlite", *SERVER_KINDS)
APP_NAME: Final = "bench"
_EXECUTORS: Final = {"recording": "benchmarks.recording_executor", "sdk": "benchmarks.sdk_executor"}
EXECUTORS: Final = tuple(_EXECUTORS)


@dataclass(frozen=True, slots=True)
class Place:
    """A database of its own. `server_pid` is its server's process, if it has one."""

    folder: Path
    database_url: str
    server_pid: int | None
    token: str
    metrics_token: str

    def write(self, work: Callable[..., Any], *args: object) -> Any:
        """Run a function of the store in a transaction."""
        return self.with_database(lambda database: database.write(work, *args))

    def execute(self, statement: str, **values: object) -> None:
        self.write(lambda connection: connection.execute(text(statement), values))

    def rows(self, query: str, **values: object) -> list[Any]:
        def read(connection: Connection) -> list[Any]:
            return list(connection.execute(text(query), values).all())

        return list(self.with_database(lambda database: database.read(read)))

    def count(self, of_what: str, **values: object) -> int:
        """How many rows there are: `of_what` goes on after FROM."""
        ((count,),) = self.rows(f"SELECT COUNT(*) FROM {of_what}", **values)
        return int(count)

    def with_database(self, do: Callable[[Database], Any]) -> Any:
        """Run a coroutine function with the database, opened for it."""

        async def run() -> Any:
            database = open_database(self.database_url, SystemClock(), exclusive=False)
            await database.start()
            try:
                return await do(database)
            finally:
                await database.stop()

        return asyncio.run(run())


@dataclass(frozen=True, slots=True)
class Admin:
    """An admin that runs."""

    pid: int
    url: str
    metrics_token: str

    def metric(self, name: str) -> float:
        """A figure from `/metrics` that has no labels."""
        return read_value(self.url, self.metrics_token, name)


class Execution(NamedTuple):
    """A run as it arrived at an executor; times are epoch milliseconds."""

    run_id: int
    planned_ms: int
    arrived_ms: int


@dataclass(frozen=True, slots=True)
class Executor:
    """An executor that runs, and notes what arrives."""

    process: "subprocess.Popen[bytes]"
    record: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def executions(self) -> list[Execution]:
        """Stop it and read its notes."""
        stop(self.process)
        return [Execution(*map(int, line.split())) for line in self.record.read_text().splitlines()]


@contextmanager
def throw_away_place(kind: str) -> Iterator[Place]:
    """A new database that holds the schema alone; it is gone when this returns."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jobwheel-bench-")))
        url, server_pid = f"sqlite:///{folder / 'jobwheel.db'}", None
        if kind in SERVER_KINDS:
            server = stack.enter_context(running_server(kind, durable=True))
            url, server_pid = server.url(EMPTY_DATABASE), server.process.process_id
        place = Place(folder, url, server_pid, secrets.token_urlsafe(24), secrets.token_urlsafe(24))
        place.write(schema.prepare, "the benchmark's database")
        yield place


@contextmanager
def running_admin(place: Place, **settings: object) -> Iterator[Admin]:
    """An admin with the defaults but for `settings`, by their names."""
    port = free_port()
    own = {
        "data_dir": place.folder / f"admin-{port}",
        "database_url": place.database_url,
        "port": port,
        "access_token": place.token,
        "metrics_token": place.metrics_token,
        "admin_password": secrets.token_urlsafe(12),
        **settings,
    }
    environment = {**os.environ, **{f"JOBWHEEL_{name.upper()}": str(value) for name, value in own.items()}}
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.admin_process"], env=environment)
    try:
        wait_for_port(port)
        admin = Admin(process.pid, f"http://127.0.0.1:{port}", place.metrics_token)
        # It listens before it is ready: whoever asks meanwhile waits for the answer.
        httpx.get(f"{admin.url}/health", timeout=60).raise_for_status()
        yield admin
    finally:
        stop(process)


@contextmanager
def running_executor(
    place: Place,
    admins: Sequence[Admin],
    *,
    kind: str = "recording",
    app_name: str = APP_NAME,
    batched: bool = False,
) -> Iterator[Executor]:
    """An executor of one of `EXECUTORS`, registered at the admins; `batched` is for the recording one."""
    port = free_port()
    record = place.folder / f"executions-{port}"
    arguments = [str(port), ",".join(admin.url for admin in admins), place.token, str(record), app_name]
    if batched:
        arguments.append("batched")
    process = subprocess.Popen([sys.executable, "-m", _EXECUTORS[kind], *arguments])
    try:
        # A run that is due before the admin knows of the executor has nowhere to go.
        mine = "xxl_job_registry WHERE registry_value LIKE :address"
        wait_until(lambda: place.count(mine, address=f"%:{port}/") > 0, f"{app_name} is registered")
        yield Executor(process, record)
    finally:
        stop(process)
