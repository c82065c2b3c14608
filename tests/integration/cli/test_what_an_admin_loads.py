"""What a fresh admin has in its memory: nothing that it does without.

Each package here takes a MiB or more, in one process or in both. One that is needed after all is loaded when it is
needed: beside the event loop, if that is later than the start.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.integration.cli.conftest import COMMAND
from tests.support.sqlite_file import make_sqlite_file

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]

NOT_BEFORE_AN_ALARM = {"httpx", "httpcore"}
NOT_WITHOUT_A_CHANGE_OF_THE_SCHEMA = {"alembic", "mako"}
NOT_ON_SQLITE = {
    *("sqlalchemy.orm", "sqlalchemy.ext.asyncio", "sqlalchemy.dialects.postgresql", "greenlet", "asyncpg", "asyncmy"),
    *("jobwheel.admin.store.dialects.postgresql", "jobwheel.admin.store.dialects.mysql"),
}
NOT_FOR_OTHER_COMMANDS = {"jobwheel.executor", "pygments", "rich", "yaml"}
UNWANTED = NOT_BEFORE_AN_ALARM | NOT_WITHOUT_A_CHANGE_OF_THE_SCHEMA | NOT_ON_SQLITE | NOT_FOR_OTHER_COMMANDS
NOT_TO_WRITE = {"fastapi", "jinja2", "jobwheel.admin.api", "jobwheel.admin.services", "pydantic", "uvloop", "uvicorn"}

IMPORTED = "import time:"
"""How Python begins a line about a module, if it is asked to tell."""

# The last module that the process which writes loads of its own accord: with its first claim.
CLAIM = "jobwheel.admin.engine.claim"


def test_an_admin_loads_nothing_that_it_does_without(tmp_path: Path) -> None:
    data_dir = tmp_path / "admin"
    make_sqlite_file(data_dir)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("JOBWHEEL_")}
    with subprocess.Popen(
        (*COMMAND, "admin", "--port", "0", "--data-dir", str(data_dir), "--stop-on-stdin-end"),
        cwd=tmp_path,
        env={**environ, "PYTHONPROFILEIMPORTTIME": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        loaded = _modules(process.stdout)
        process.communicate(timeout=30)
    assert process.returncode == 0
    assert loaded >= {"fastapi", "sqlalchemy"}
    assert UNWANTED & loaded == set()


def _modules(lines: Iterable[str]) -> set[str]:
    """What both processes of an admin have loaded when they serve, and both have claimed."""
    loaded: Counter[str] = Counter()
    is_serving = False
    for line in lines:
        if line.startswith(IMPORTED):
            loaded[line.rpartition("|")[2].strip()] += 1
        is_serving = is_serving or "Jobwheel listens on" in line
        if is_serving and loaded[CLAIM] == 2:
            return set(loaded)
    raise EOFError("the admin ended")


def test_the_process_that_writes_loads_what_writing_takes() -> None:
    # What the engine has it do, which a fresh admin does not all come to.
    worker = ("store.sqlite_worker", "engine.claim", "store.take_off", "store.run_log", "store.claims")
    program = f"import sys, {', '.join(f'jobwheel.admin.{name}' for name in worker)}; print(*sys.modules)"
    done = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, timeout=30, check=True)
    loaded = set(done.stdout.split())
    assert loaded >= {"sqlalchemy", CLAIM}
    assert (UNWANTED | NOT_TO_WRITE) & loaded == set()
