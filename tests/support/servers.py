"""Throw-away database servers on loopback, one of each kind for a whole test run."""

import contextlib
import getpass
import os
import pwd
import secrets
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support import packages
from tests.support.http_peer import unused_port
from tests.support.server_process import ServerProcess, run_as

SERVER_KINDS: Final = ("postgresql", "mariadb")

EMPTY_DATABASE: Final = "postgres"
"""A database that each new server has, and that nobody uses: PostgreSQL's own; MariaDB gets one of the same name."""

_PACKAGES: Final = {"postgresql": ("postgresql",), "mariadb": ("mariadb-server-core", "mariadb-client-core")}


class ServerMissingError(packages.MissingError):
    """The programs of a server are not on this machine."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server with its process, and its user who may do everything."""

    kind: str
    port: int
    user: str
    password: str
    process: ServerProcess

    def url(self, database: str, *, user: str | None = None, password: str | None = None) -> str:
        credentials = f"{user or self.user}:{password or self.password}"
        return f"{self.kind}://{credentials}@127.0.0.1:{self.port}/{database}"


@contextlib.contextmanager
def running_server(kind: str, *, durable: bool = False) -> Iterator[Server]:
    """A server of its own in a temporary folder; it has ended when this returns.

    Args:
        kind: one of `SERVER_KINDS`.
        durable: what is committed survives a power cut, as anywhere but in tests; for measurements.

    Raises:
        ServerMissingError: its programs are missing and cannot be installed.
    """
    make = {"postgresql": _make_postgresql, "mariadb": _make_mariadb}[kind]
    install(kind)
    folder = Path(tempfile.mkdtemp(prefix=f"jobwheel-{kind}-"))
    folder.chmod(0o755)
    try:
        server = make(folder, durable=durable)
        try:
            server.process.start()
            yield server
        finally:
            server.process.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def install(kind: str) -> None:
    """See to it that a server's programs are there.

    Raises:
        ServerMissingError: they are missing and cannot be installed.
    """
    try:
        packages.install(kind, _PACKAGES[kind], lambda: _program(kind) is not None)
    except packages.MissingError as error:
        raise ServerMissingError(str(error)) from error


def _program(kind: str) -> Path | None:
    """The server's program, the newest if there are several."""
    if kind == "postgresql":
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
        return found[-1] if found else None
    return next((path for path in (Path("/usr/sbin/mariadbd"),) if path.exists()), None)


def _make_postgresql(folder: Path, *, durable: bool) -> Server:
    initdb = _program("postgresql")
    assert initdb is not None
    data, password, port = folder / "data", secrets.token_hex(12), unused_port()
    user = _own(folder, "postgres")
    password_file = folder / "password"
    password_file.write_text(password)
    shutil.chown(password_file, user)
    options = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--username=wheel"]
    run_as(user, [str(initdb), "-D", str(data), f"--pwfile={password_file}", *options])
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",
        **({} if durable else {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}),
        "shared_buffers": "256MB",
        "max_connections": "60",
        # Neither UTC nor the zone of the tests' process.
        "timezone": "America/St_Johns",
    }
    flags = [flag for name, value in settings.items() for flag in ("-c", f"{name}={value}")]
    command = [str(initdb.parent / "postgres"), "-D", str(data), *flags]
    # SIGINT is its fast shutdown.
    process = ServerProcess(command, user, folder, signal.SIGINT, lambda: _postgresql_answers(port))
    return Server("postgresql", port, "wheel", password, process)


def _make_mariadb(folder: Path, *, durable: bool) -> Server:
    program = _program("mariadb")
    assert program is not None
    data, password, port = folder / "data", secrets.token_hex(12), unused_port()
    data.mkdir()
    user = _own(folder, "mysql", data)
    # A server that starts removes what it takes for leftovers in its temporary folder, also those of one that runs.
    scratch = folder / "scratch"
    scratch.mkdir()
    shutil.chown(scratch, user)
    flags = ["--no-defaults", f"--datadir={data}", f"--tmpdir={scratch}"]
    run_as(user, ["mariadb-install-db", *flags, "--auth-root-authentication-method=normal", "--skip-test-db"])
    first = folder / "first.sql"
    first.write_text(
        # Read at each start.
        f"CREATE USER IF NOT EXISTS wheel@'127.0.0.1' IDENTIFIED BY '{password}';\n"
        "GRANT ALL PRIVILEGES ON *.* TO wheel@'127.0.0.1' WITH GRANT OPTION;\n"
        f"DROP USER IF EXISTS root@localhost;\nCREATE DATABASE IF NOT EXISTS {EMPTY_DATABASE};\n"
    )
    shutil.chown(first, user)
    flags += [
        "--bind-address=127.0.0.1",
        f"--port={port}",
        f"--socket={folder / 'socket'}",
        f"--pid-file={folder / 'pid'}",
        f"--init-file={first}",
        "--skip-name-resolve",
        "--skip-log-bin",
        "--innodb-buffer-pool-size=256M",
        "--default-time-zone=-03:30",
        "--character-set-server=latin1",
        "--max-connections=60",
    ]
    if not durable:
        flags += ["--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-flush-method=nosync"]
    process = ServerProcess([str(program), *flags], user, folder, signal.SIGTERM, lambda: _mariadb_answers(port))
    return Server("mariadb", port, "wheel", password, process)


def _own(folder: Path, wanted: str, *more: Path) -> str:
    """Give the folder to whoever runs the server: both refuse to run as root."""
    if os.geteuid() != 0:
        return getpass.getuser()
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = wanted if wanted in names else "nobody"
    for path in (folder, *more):
        shutil.chown(path, user)
    return user


def _postgresql_answers(port: int) -> bool:
    """Whether it accepts connections. One that is still starting accepts them and refuses the first word."""
    # A start-up message for a user whose password is asked for: R (authentication) means ready.
    body = b"\0\x03\0\0user\0wheel\0database\0postgres\0\0"
    return _first_bytes(port, (len(body) + 4).to_bytes(4, "big") + body) == b"R"


def _mariadb_answers(port: int) -> bool:
    return b"mysql_native_password" in _first_bytes(port, b"", 200)


def _first_bytes(port: int, sent: bytes, most: int = 1) -> bytes:
    """What a server says first; nothing if it cannot be reached."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
            probe.sendall(sent)
            return probe.recv(most)
    except OSError:
        return b""
