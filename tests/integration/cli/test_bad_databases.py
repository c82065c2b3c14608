"""`jobwheel admin` on databases that it cannot use: one line, code 1, nothing half made."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from tests.integration.cli.conftest import COMMAND
from tests.support.run_servers import Servers
from tests.support.servers import SERVER_KINDS

pytestmark = pytest.mark.timeout(60)

DATABASE = "jobwheel_bad"
PASSWORD = "made-up-71aa"
Refused = Callable[[str], str]


@pytest.fixture(params=SERVER_KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(kind: str, servers: Servers) -> str:
    """An empty database, as its weak user, who may connect and nothing more."""
    servers.make_database(kind, DATABASE)
    host = "@'127.0.0.1'" if kind == "mariadb" else ""
    word = "IDENTIFIED BY" if kind == "mariadb" else "PASSWORD"
    servers.run(kind, f"DROP USER IF EXISTS reader{host}", f"CREATE USER reader{host} {word} '{PASSWORD}'")
    if kind == "mariadb":
        servers.run(kind, f"GRANT SELECT ON {DATABASE}.* TO reader{host}")
    else:
        servers.run(kind, "GRANT pg_read_all_data TO reader")
    return servers.running[kind].url(DATABASE, user="reader", password=PASSWORD)


@dataclass(frozen=True, slots=True)
class Ended:
    """How an admin ended; one that could start was stopped as soon as it listened."""

    code: int
    out: str
    err: str


def started(url: str, folder: Path) -> Ended:
    arguments = ["admin", "--port", "0", "--data-dir", str(folder), "--database-url", url, "--stop-on-stdin-end"]
    command = [*COMMAND, *arguments]
    with (folder / "errors").open("w+") as errors, _process(command, errors) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        out = ""
        for line in process.stdout:
            out += line
            if "listens on" in line:
                process.stdin.close()
        code = process.wait(timeout=30)
        errors.seek(0)
        return Ended(code, out, errors.read())


def _process(command: list[str], errors: IO[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)


@pytest.fixture
def refused(tmp_path: Path) -> Refused:
    """The one line of an admin that does not start."""

    def start(url: str) -> str:
        ended = started(url, tmp_path)
        assert (ended.code, ended.out) == (1, ""), ended.err
        assert PASSWORD not in ended.err
        assert "Traceback" not in ended.err
        return ended.err.strip().splitlines()[-1]

    return start


def test_who_may_only_read_is_told_before_and_after_the_first_start(
    kind: str, servers: Servers, url: str, refused: Refused, tmp_path: Path
) -> None:
    assert "may not change it: run `jobwheel db upgrade`" in refused(url)
    assert started(servers.running[kind].url(DATABASE), tmp_path).code == 0
    assert "has too few rights" in refused(url)


def test_a_server_that_speaks_no_tls_is_told(kind: str, url: str, refused: Refused) -> None:
    assert "a TLS connection as sslmode=require wants it cannot be made" in refused(f"{url}?sslmode=require")


def test_a_server_that_is_not_there_is_told(kind: str, servers: Servers, url: str, refused: Refused) -> None:
    port = servers.running[kind].port
    assert "is it running, and are its host and port right?" in refused(url.replace(f":{port}/", ":1/"))


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_a_search_path_that_leads_nowhere_is_told(servers: Servers, url: str, refused: Refused) -> None:
    servers.run("postgresql", f"ALTER ROLE reader IN DATABASE {DATABASE} SET search_path = nowhere")
    assert "names no schema that is there" in refused(url)


@pytest.mark.parametrize("kind", ["mariadb"], indirect=True)
def test_somebody_elses_tables_are_left_alone(servers: Servers, url: str, refused: Refused) -> None:
    servers.run("mariadb", f"CREATE TABLE {DATABASE}.customers (id INTEGER PRIMARY KEY)")
    assert "give Jobwheel an empty database of its own" in refused(url)


@pytest.mark.parametrize("kind", ["mariadb"], indirect=True)
def test_a_server_that_can_only_be_read_is_told(servers: Servers, url: str, refused: Refused) -> None:
    servers.run("mariadb", f"GRANT ALL PRIVILEGES ON {DATABASE}.* TO reader@'127.0.0.1'", "SET GLOBAL read_only = 1")
    try:
        assert "can only be read, and Jobwheel writes: name the primary server" in refused(url)
    finally:
        servers.run("mariadb", "SET GLOBAL read_only = 0")
