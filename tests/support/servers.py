"""Throw-away database servers on loopback, one of each kind for a whole test run."""

import contextlib
import getpass
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SERVER_KINDS: Final = ("postgresql", "mariadb")

EMPTY_DATABASE: Final = "postgres"
"""A database that each new server has, and that nobody uses: PostgreSQL's own; MariaDB gets one of the same name."""

_POLICY: Final = Path("/usr/sbin/policy-rc.d")
_START_S: Final = 60
_PACKAGES: Final = {"postgresql": ("postgresql",), "mariadb": ("mariadb-server-core", "mariadb-client-core")}
# Ends the server when this process has ended, however it ended: the pipe's other end is ours alone.
_GUARD: Final = """
import os, signal, sys
os.setsid()
sys.stdin.buffer.read()
try:
    os.kill(int(sys.argv[1]), signal.SIGKILL)
except ProcessLookupError:
    pass
import shutil
shutil.rmtree(sys.argv[2], ignore_errors=True)
"""


class ServerMissingError(Exception):
    """The programs of a server are not on this machine."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, and its user who may do everything."""

    kind: str
    port: int
    user: str
    password: str
    process_id: int
    folder: Path

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
    start = {"postgresql": _start_postgresql, "mariadb": _start_mariadb}[kind]
    _install(kind)
    folder = Path(tempfile.mkdtemp(prefix=f"jobwheel-{kind}-"))
    folder.chmod(0o755)
    try:
        process, server = start(folder, durable=durable)
        guard = subprocess.Popen([sys.executable, "-c", _GUARD, str(process.pid), str(folder)], stdin=subprocess.PIPE)
        try:
            _wait_until_ready(process, server)
            yield server
        finally:
            _end(process)
            guard.kill()
            guard.communicate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _install(kind: str) -> None:
    if _program(kind) is not None:
        return
    packages = _PACKAGES[kind]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ServerMissingError(f"{kind} is not on this machine: apt-get install {' '.join(packages)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    said = ""
    with _no_services():
        for command in (["update", "-qq"], ["install", "--yes", "-qq", "--no-install-recommends", *packages]):
            done = subprocess.run(["apt-get", *command], env=environment, capture_output=True, text=True, check=False)
            said = done.stderr[-500:]
    if _program(kind) is None:
        raise ServerMissingError(f"{kind} is not on this machine and cannot be installed: {said}")


@contextlib.contextmanager
def _no_services() -> Iterator[None]:
    """Only programs are wanted: a package that is installed inside starts no service (Debian's own way to say so)."""
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink()


def _program(kind: str) -> Path | None:
    """The server's program, the newest if there are several."""
    if kind == "postgresql":
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
        return found[-1] if found else None
    return next((path for path in (Path("/usr/sbin/mariadbd"),) if path.exists()), None)


def _start_postgresql(folder: Path, *, durable: bool) -> tuple["subprocess.Popen[bytes]", Server]:
    initdb = _program("postgresql")
    assert initdb is not None
    data, password, port = folder / "data", secrets.token_hex(12), _free_port()
    user = _own(folder, "postgres")
    password_file = folder / "password"
    password_file.write_text(password)
    shutil.chown(password_file, user)
    options = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--username=wheel"]
    _run([str(initdb), "-D", str(data), f"--pwfile={password_file}", *options], user)
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
    process = _spawn([str(initdb.parent / "postgres"), "-D", str(data), *flags], folder / "log", user)
    return process, Server("postgresql", port, "wheel", password, process.pid, folder)


def _start_mariadb(folder: Path, *, durable: bool) -> tuple["subprocess.Popen[bytes]", Server]:
    program = _program("mariadb")
    assert program is not None
    data, password, port = folder / "data", secrets.token_hex(12), _free_port()
    data.mkdir()
    user = _own(folder, "mysql", data)
    # A server that starts removes what it takes for leftovers in its temporary folder, also those of one that runs.
    scratch = folder / "scratch"
    scratch.mkdir()
    shutil.chown(scratch, user)
    flags = ["--no-defaults", f"--datadir={data}", f"--tmpdir={scratch}"]
    _run(["mariadb-install-db", *flags, "--auth-root-authentication-method=normal", "--skip-test-db"], user)
    first = folder / "first.sql"
    first.write_text(
        f"CREATE USER wheel@'127.0.0.1' IDENTIFIED BY '{password}';\n"
        "GRANT ALL PRIVILEGES ON *.* TO wheel@'127.0.0.1' WITH GRANT OPTION;\n"
        f"DROP USER IF EXISTS root@localhost;\nCREATE DATABASE {EMPTY_DATABASE};\n"
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
    process = _spawn([str(program), *flags], folder / "log", user)
    return process, Server("mariadb", port, "wheel", password, process.pid, folder)


def _own(folder: Path, wanted: str, *more: Path) -> str:
    """Give the folder to whoever runs the server: both refuse to run as root."""
    if os.geteuid() != 0:
        return getpass.getuser()
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = wanted if wanted in names else "nobody"
    for path in (folder, *more):
        shutil.chown(path, user)
    return user


def _demoted(user: str) -> dict[str, str | int | list[int]]:
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _run(command: list[str], user: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **_demoted(user))  # type: ignore[call-overload]
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout[-3000:]}{done.stderr[-3000:]}")


def _spawn(command: list[str], log: Path, user: str) -> "subprocess.Popen[bytes]":
    with log.open("wb") as output:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            **_demoted(user),  # type: ignore[call-overload]
        )
    return process


def _wait_until_ready(process: "subprocess.Popen[bytes]", server: Server) -> None:
    deadline_s = time.perf_counter() + _START_S
    while not _answers(server):
        if process.poll() is not None or time.perf_counter() > deadline_s:
            log = (server.folder / "log").read_text(errors="replace")
            raise RuntimeError(f"{server.kind} does not start: {log[-2000:]}")
        time.sleep(0.05)


def _answers(server: Server) -> bool:
    """Whether it accepts connections. A PostgreSQL that is still starting accepts them and refuses the first word."""
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=1) as probe:
            if server.kind == "postgresql":
                # A start-up message for a user whose password is asked for: R (authentication) means ready.
                body = b"\0\x03\0\0user\0wheel\0database\0postgres\0\0"
                probe.sendall((len(body) + 4).to_bytes(4, "big") + body)
                return probe.recv(1) == b"R"
            return b"mysql_native_password" in probe.recv(200)
    except OSError:
        return False


def _end(process: "subprocess.Popen[bytes]") -> None:
    # SIGINT is PostgreSQL's fast shutdown; the data is thrown away, so MariaDB need not tidy up.
    process.send_signal(signal.SIGINT if "postgres" in str(process.args) else signal.SIGTERM)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
