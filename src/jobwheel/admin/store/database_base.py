"""What every kind of database does for its users."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from jobwheel.admin.store.errors import DatabaseUrlError
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.service import Service

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class Database(Service, ABC):
    """Runs the store's functions, each in one transaction, without blocking the event loop that started it."""

    def __init__(self, clock: Clock) -> None:
        super().__init__("database", clock)

    @property
    @abstractmethod
    def kind(self) -> str:
        """`sqlite`, `postgresql`, `mysql` or `mariadb`."""

    @property
    @abstractmethod
    def where(self) -> str:
        """The file, or the URL without the password: for messages."""

    @property
    def is_for_one_node(self) -> bool:
        """Whether no other node can be using it: then every node that it knows of is dead when this one starts."""
        return False

    @abstractmethod
    def now_ms(self) -> int:
        """The database's clock, epoch milliseconds: the one that heartbeats and beats are written and judged by."""

    async def measure_clock(self) -> None:
        """Ask the database for its clock anew; each heartbeat of a node does. SQLite has none of its own."""

    @abstractmethod
    async def write(
        self,
        work: Callable[Concatenate[Connection, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """Run `work` in one writing transaction and return its answer once it is committed.

        If `work` raises, everything is rolled back. After a conflict with another transaction, or a connection lost
        before the commit, `work` is run again from its beginning.

        Raises:
            UnknownCommitError: the connection was lost while the transaction was committed.
            DatabaseAwayError, DatabaseSilentError, DatabaseUnusableError: it cannot be done at the moment; says why.
        """

    async def write_batch(
        self,
        work: Callable[Concatenate[Connection, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """The same, for the batches of the hot path: they may be written by another process.

        So `work` is a function of a module, found there by its name, and arguments and answer can be pickled.
        """
        return await self.write(work, *args, **kwargs)

    async def write_patiently(
        self,
        work: Callable[Concatenate[Connection, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """The same, however long it takes: for changes of the schema, which may rewrite millions of rows."""
        return await self.write(work, *args, **kwargs)

    @abstractmethod
    async def read(
        self,
        work: Callable[Concatenate[Connection, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """Run `work`, which can change nothing. On SQLite it sees one moment, on servers each statement its own.

        Raises:
            DatabaseAwayError, DatabaseSilentError, DatabaseUnusableError: it cannot be done at the moment; says why.
        """


def parsed_url(url: str) -> URL:
    """The parts of a database URL.

    Raises:
        DatabaseUrlError: it is none; the message does not tell the password.
    """
    try:
        return make_url(url)
    except (ArgumentError, ValueError) as error:
        # What cannot be taken apart may hold a password all the same.
        hidden = re.sub(r"^([^@]*//)?[^@]*(@.*)@?", r"\1***\2", url, flags=re.DOTALL) if "@" in url else url
        raise DatabaseUrlError(hidden, "this is no database URL") from error
