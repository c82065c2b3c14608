"""An environment of its own for pyxxl, an executor in Python that is not ours."""

import fcntl
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

from tests.support.packages import MissingError

VERSION: Final = "0.4.8"
_FOLDER: Final = Path(__file__).parents[2] / "build" / "interop" / f"pyxxl-{VERSION}"
_PIP_S: Final = 180


def pyxxl_python() -> Path:
    """The interpreter that has it; made once.

    Raises:
        MissingError: pip cannot get it.
    """
    _FOLDER.mkdir(parents=True, exist_ok=True)
    python, stamp = _FOLDER / "bin" / "python", _FOLDER / "stamp"
    wanted = sys.version
    # Tests that run two at once make it once.
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (stamp.exists() and stamp.read_text() == wanted):
            venv.create(_FOLDER, with_pip=True, symlinks=True)
            _install(python)
            stamp.write_text(wanted)
    return python


def _install(python: Path) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"pyxxl=={VERSION}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PIP_S)
    except subprocess.TimeoutExpired:
        raise MissingError(f"pip has not got pyxxl {VERSION} after {_PIP_S} s") from None
    if done.returncode:
        raise MissingError(f"pip cannot get pyxxl {VERSION} (is there a network?): {done.stderr.strip()[-300:]}")
