"""PostgreSQL, MySQL and MariaDB: the store's functions through an asynchronous driver."""

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Concatenate

from sqlalchemy import Connection, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from jobwheel.admin.store.database_base import Answer, Arguments, Database, parsed_url
from jobwheel.admin.store.driver_log import forward_driver_log
from jobwheel.admin.store.errors import (
    DatabaseAwayError,
    DatabaseSilentError,
    DatabaseUnusableError,
    DatabaseUrlError,
    UnknownCommitError,
)
from jobwheel.admin.store.server_kinds import ServerKind
from jobwheel.admin.store.server_words import reason_of
from jobwheel.admin.store.trouble import Trouble, trouble_of
from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

_CONFLICT_TRIES = 10
_LOST_TRIES = 4
_POOL_TIMEOUT_S = 10.0
_CLOSE_S = 5.0
_RECYCLE_S = 1800
# Of ten connections three read: those commit nothing, so they need neither BEGIN nor COMMIT.
_READING_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """How many connections are held at most, and how long a transaction may take."""

    connections: int
    timeout_s: float


class ServerDatabase(Database):
    """A database of a server, shared with other nodes and perhaps with Java admins.

    Connections that write and connections that read are two pools; the latter refuse every change.
    """

    def __init__(self, kind: ServerKind, url: str, clock: Clock, limits: ServerLimits) -> None:
        super().__init__(clock)
        self._server = kind
        self._url = parsed_url(url)
        self._where = self._url.render_as_string(hide_password=True)
        self._check_url()
        self._kind = self._url.drivername
        reading = max(1, round(limits.connections * _READING_SHARE))
        self._sizes = {False: max(1, limits.connections - reading), True: reading}
        self._timeout_s = limits.timeout_s
        self._silent_at_s = -math.inf
        self._engines: dict[bool, AsyncEngine] = {}
        self._between_conflicts = Backoff(first_s=0.005, most_s=0.1, jitter=0.9)
        self._between_losses = Backoff(first_s=0.2, most_s=1.0)
        self._clock_origin_ms = clock.now() - clock.monotonic() * 1000

    @property
    def kind(self) -> str:
        return self._kind

    @property
    def where(self) -> str:
        return self._where

    @property
    def checked_out(self) -> int:
        """How many connections are in use."""
        pools: list[Any] = [engine.pool for engine in self._engines.values()]
        return sum(pool.checkedout() for pool in pools)

    def now_ms(self) -> int:
        """The server's clock when it was asked last, and the monotonic clock since."""
        return int(self._clock_origin_ms + self.clock.monotonic() * 1000)

    async def measure_clock(self) -> None:
        """Ask the server for its clock anew. What the answer took on its way is halved."""
        self._clock_origin_ms = await self.read(self._origin_of_clock)

    async def write(
        self,
        work: Callable[Concatenate[Connection, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        return await self._with_retries(
            lambda: self._transaction(lambda connection: work(connection, *args, **kwargs), only_reads=False)
        )

    async def write_patiently(
        self,
        work: Callable[Concatenate[Connection, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        bound = lambda connection: work(connection, *args, **kwargs)  # noqa: E731 - as short as its use
        return await self._with_retries(lambda: self._limited(bound, asyncio.timeout(None), only_reads=False))

    async def read(
        self,
        work: Callable[Concatenate[Connection, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        return await self._with_retries(
            lambda: self._transaction(lambda connection: work(connection, *args, **kwargs), only_reads=True)
        )

    async def on_start(self) -> None:
        forward_driver_log(self._server.package)
        try:
            self._engines = {only_reads: self._engine(only_reads=only_reads) for only_reads in (False, True)}
        except ImportError as error:
            reason = f"the driver {self._server.package} is missing: install jobwheel[admin]"
            raise DatabaseUnusableError(self._where, reason) from error
        try:
            self._kind, found, least = await self._transaction(self._server.version, only_reads=False)
            encoding = await self._transaction(self._server.encoding, only_reads=True)
            self._clock_origin_ms = await self._transaction(self._origin_of_clock, only_reads=True)
        except (DBAPIError, DatabaseAwayError) as error:
            raise DatabaseUnusableError(self._where, reason_of(error, self._url)) from error
        if found < least:
            versions = [".".join(map(str, each)) for each in (found, least)]
            reason = f"its server is {self._kind} {versions[0]}, and {versions[1]} is the oldest that will do"
            raise DatabaseUnusableError(self._where, reason)
        if encoding != "UTF8":
            reason = f"its encoding is {encoding}, which cannot hold every text: make it anew with ENCODING 'UTF8'"
            raise DatabaseUnusableError(self._where, reason)

    async def on_stop(self) -> None:
        engines, self._engines = self._engines, {}
        for engine in engines.values():
            try:
                await asyncio.wait_for(engine.dispose(), _CLOSE_S)
            except TimeoutError:
                # Whoever does not answer a good-bye is left alone; the process ends soon.
                log.warning("database.close_timed_out", where=self._where)

    def _check_url(self) -> None:
        unknown = sorted(set(self._url.query) - set(self._server.parameters))
        if unknown:
            known = ", ".join(self._server.parameters)
            raise DatabaseUrlError(self._where, f"{unknown[0]} is no parameter; there are {known}")
        if not self._url.database:
            raise DatabaseUrlError(self._where, "it names no database: …/name")
        self._server.arguments(self._url, only_reads=False)

    def _engine(self, *, only_reads: bool) -> AsyncEngine:
        server = self._server
        engine = create_async_engine(
            self._url.set(drivername=server.driver, query={}),
            connect_args=dict(server.arguments(self._url, only_reads=only_reads)),
            pool_size=self._sizes[only_reads],
            max_overflow=0,
            pool_timeout=_POOL_TIMEOUT_S,
            # A connection that died while it was idle fails at its first statement and is replaced; who asks before
            # each transaction pays a round trip for the same.
            pool_recycle=_RECYCLE_S,
            pool_use_lifo=True,
            # Each transaction is committed or rolled back here; a connection whose state is unknown is thrown away.
            pool_reset_on_return=None,
            isolation_level="AUTOCOMMIT" if only_reads else None,
            # Errors are logged, and values are hashes of passwords and tokens, and parameters of jobs.
            hide_parameters=True,
            skip_autocommit_rollback=only_reads,
        )

        # Before SQLAlchemy looks how this server quotes names, which a session of ours may do in another way.
        @event.listens_for(engine.sync_engine, "connect", insert=True)
        def set_up(connection: Any, record: ConnectionPoolEntry) -> None:
            record.info["made_s"] = self.clock.monotonic()
            with contextlib.closing(connection.cursor()) as cursor:
                for statement in server.session(only_reads):
                    cursor.execute(statement)

        return engine

    async def _with_retries(self, attempt: Callable[[], Awaitable[Answer]]) -> Answer:
        conflicts = losses = 0
        while True:
            try:
                return await attempt()
            except (DBAPIError, DatabaseAwayError, PoolTimeoutError) as error:
                trouble = trouble_of(error)
                conflicts += trouble is Trouble.CONFLICT
                losses += trouble is Trouble.LOST
                if trouble in (None, Trouble.OUTAGE) or conflicts >= _CONFLICT_TRIES or losses >= _LOST_TRIES:
                    raise self._in_words(error, trouble) from error
                log.debug("database.again", conflicts=conflicts, losses=losses, error=repr(error))
            await self.clock.wait(self._delay_s(trouble, conflicts, losses))

    def _in_words(self, error: Exception, trouble: Trouble | None) -> Exception:
        """What whoever asked is told: a driver's error is long, and holds a statement."""
        if trouble is Trouble.LOST:
            return DatabaseAwayError(self._where, reason_of(error, self._url))
        if trouble is Trouble.OUTAGE:
            return DatabaseUnusableError(self._where, reason_of(error, self._url))
        return error

    def _delay_s(self, trouble: Trouble | None, conflicts: int, losses: int) -> float:
        if trouble is Trouble.CONFLICT:
            return self._between_conflicts.delay_s(conflicts)
        # The first loss is often of a connection that died long ago: a new one may work at once.
        return 0.0 if losses == 1 else self._between_losses.delay_s(losses - 1)

    async def _transaction(self, work: Callable[[Connection], Answer], *, only_reads: bool) -> Answer:
        """One try, which ends in time whether the server answers or not."""
        limit = asyncio.timeout(self._timeout_s)
        try:
            return await self._limited(work, limit, only_reads=only_reads)
        except DatabaseAwayError as error:
            if not limit.expired():
                raise
            self._silent_at_s = self.clock.monotonic()
            raise DatabaseSilentError(self._where, self._timeout_s) from error

    async def _limited(
        self, work: Callable[[Connection], Answer], limit: asyncio.Timeout, *, only_reads: bool
    ) -> Answer:
        assert self._engines, "the database is not started"
        try:
            async with limit, self._engines[only_reads].connect() as connection:
                try:
                    # Where one fell silent, each that is as old would cost another wait.
                    if _info_of(connection)["made_s"] <= self._silent_at_s:
                        await connection.invalidate()
                    return await self._run(connection, work, limit)
                except (asyncio.CancelledError, UnknownCommitError):
                    # Broken off in the middle of a statement: its answer may still come.
                    await connection.invalidate()
                    raise
        except OSError as error:
            raise DatabaseAwayError(self._where, str(error) or type(error).__name__) from error

    async def _run(
        self, connection: AsyncConnection, work: Callable[[Connection], Answer], limit: asyncio.Timeout
    ) -> Answer:
        try:
            answer = await connection.run_sync(work)
        except Exception:
            await connection.rollback()
            raise
        try:
            await connection.commit()
        except asyncio.CancelledError as error:
            if not limit.expired():
                raise
            self._silent_at_s = self.clock.monotonic()
            raise UnknownCommitError(self._where) from error
        except OSError as error:
            raise UnknownCommitError(self._where) from error
        except DBAPIError as error:
            if trouble_of(error) is Trouble.LOST:
                raise UnknownCommitError(self._where) from error
            raise
        return answer

    def _origin_of_clock(self, connection: Connection) -> float:
        before_s = self.clock.monotonic()
        server_ms = int(connection.exec_driver_sql(self._server.clock).scalar_one())
        return server_ms - (before_s + self.clock.monotonic()) / 2 * 1000


def _info_of(connection: AsyncConnection) -> dict[Any, Any]:
    assert connection.sync_connection is not None, "it is open"
    return connection.sync_connection.info
