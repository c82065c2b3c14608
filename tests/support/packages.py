"""Programs that tests use and that are not Python's: Debian's packages, which root gets installed."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

_POLICY: Final = Path("/usr/sbin/policy-rc.d")


class MissingError(Exception):
    """What a test needs is not on this machine."""


def install(what: str, packages: tuple[str, ...], is_there: Callable[[], bool]) -> None:
    """See to it that programs are there; `is_there` says whether they are.

    Raises:
        MissingError: they are missing and cannot be installed.
    """
    if is_there():
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise MissingError(f"{what} is not on this machine: apt-get install {' '.join(packages)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    said = ""
    with _no_services():
        for command in (["update", "-qq"], ["install", "--yes", "-qq", "--no-install-recommends", *packages]):
            done = subprocess.run(["apt-get", *command], env=environment, capture_output=True, text=True, check=False)
            said = done.stderr[-500:]
    if not is_there():
        wanted = " ".join(packages)
        raise MissingError(f"{what} is not on this machine, and apt-get install {wanted} does not help: {said}")


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
