"""The servers of one test run, each started when the first test that needs it has been found."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

from sqlalchemy import NullPool, text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from tests.support.servers import SERVER_KINDS, Server, ServerMissingError, running_server

_DATABASE = "jobwheel_test"
_MAINTENANCE = {"postgresql": ("postgresql+asyncpg", "postgres"), "mariadb": ("mysql+asyncmy", "mysql")}


@dataclass
class Servers:
    """Servers by kind, or why there is none."""

    running: dict[str, Server] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def start(self, kinds: Iterable[str]) -> None:
        """Start what is not running yet; note what is missing.

        Raises:
            ServerMissingError: one is missing where all must be tested (CI=true).
        """
        for kind in sorted(set(kinds) & set(SERVER_KINDS) - self.running.keys()):
            try:
                self.running[kind] = self._stack.enter_context(running_server(kind))
            except ServerMissingError as error:
                if os.environ.get("CI") == "true":
                    raise
                self.missing[kind] = str(error)
            else:
                self.make_database(kind, _DATABASE)

    def stop(self) -> None:
        self._stack.close()

    def url_of(self, kind: str) -> str:
        """The URL of the database that tests share, one after the other."""
        return self.running[kind].url(_DATABASE)

    def make_database(self, kind: str, name: str) -> str:
        """An empty database beside it; its URL."""
        self.run(kind, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
        return self.running[kind].url(name)

    def run(self, kind: str, *statements: str) -> None:
        """Run statements as the user who may do everything, outside of any database of ours."""
        asyncio.run(_run(self.running[kind], statements))

    async def run_here(self, kind: str, *statements: str) -> None:
        """The same, inside a running event loop."""
        await _run(self.running[kind], statements)


async def _run(server: Server, statements: Iterable[str]) -> None:
    async with connected(server) as connection:
        for statement in statements:
            await connection.execute(text(statement))


@contextlib.asynccontextmanager
async def connected(server: Server, database: str | None = None) -> AsyncIterator[AsyncConnection]:
    """A connection of the user who may do everything. Each statement is committed by itself."""
    driver, maintenance = _MAINTENANCE[server.kind]
    url = server.url(database or maintenance).replace(f"{server.kind}://", f"{driver}://")
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            yield connection
    finally:
        await engine.dispose()
