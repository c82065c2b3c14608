"""What a plain install of the SDK brings, and what its import takes."""

import re
import subprocess
import sys
from importlib.metadata import requires

import pytest

DEPENDENCIES = {"httptools", "msgspec", "uvicorn", "click", "h11"}
# Loaded by the import alone; uvicorn with its two follows when a server starts.
IMPORTED = {"jobwheel", "msgspec", "httptools"}
# Of the standard library, what is dear and belongs to a start, to development or to a file of settings.
LATE = {"tomllib", "http.server", "urllib.request", "email.message", "unittest", "sqlite3", "pydoc", "pdb"}

IMPORT = (
    "import sys; before = set(sys.modules); import jobwheel; jobwheel.Executor(port=0); "
    "print(*set(sys.modules) - before)"
)


@pytest.fixture(scope="module")
def imported() -> set[str]:
    """The modules that the import of the SDK brings, in a process of its own."""
    reply = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, timeout=30, check=True)
    return set(reply.stdout.split())


def _needed(package: str) -> set[str]:
    """The packages that a plain install of `package` needs directly here, by name."""
    # A requirement whose marker speaks of an extra belongs to that extra; the other markers to old Pythons or Windows.
    plain = [line for line in requires(package) or [] if ";" not in line]
    return {re.split(r"[^A-Za-z0-9_-]", line, maxsplit=1)[0].lower() for line in plain}


def test_a_plain_install_has_five_light_dependencies() -> None:
    found: set[str] = set()
    left = {"jobwheel"}
    while left:
        needed = _needed(left.pop()) - found
        found |= needed
        left |= needed
    assert found == DEPENDENCIES


def test_the_import_brings_the_light_ones_alone(imported: set[str]) -> None:
    foreign = {name.partition(".")[0] for name in imported} - set(sys.stdlib_module_names)
    # What compiled modules and the interpreter register by themselves, and what msgspec takes along where it is there.
    foreign = {name for name in foreign if "cython" not in name and not name.startswith("__")} - {"typing_extensions"}
    assert foreign == IMPORTED


def test_the_import_brings_nothing_dear_of_the_standard_library(imported: set[str]) -> None:
    assert "asyncio" in imported
    assert imported & LATE == set()
