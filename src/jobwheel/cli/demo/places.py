"""Where a demo keeps what, and which settings its processes get."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobwheel.admin.server import CannotListenError
from jobwheel.admin.settings import Settings, load_settings
from jobwheel.kernel.secret import Secret
from jobwheel.wire.http_server import listen

APP_NAME: Final = "demo"
_HOST: Final = "127.0.0.1"
# A demo must never work on the database that the environment names for a real admin.
_HEEDED: Final = frozenset(
    {
        "JOBWHEEL_PORT",
        "JOBWHEEL_DATA_DIR",
        "JOBWHEEL_ACCESS_TOKEN",
        "JOBWHEEL_ADMIN_PASSWORD",
        "JOBWHEEL_TIMEZONE",
        "JOBWHEEL_LOG_LEVEL",
        "JOBWHEEL_ALLOW_WEAK_TOKEN",
    }
)
_STOP_DEADLINE_S: Final = 1.5


@dataclass(frozen=True, slots=True)
class Places:
    """The settings of the admin, and the files of the demo beside its database."""

    settings: Settings
    environ: Mapping[str, str]

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self.settings.port}"

    @property
    def folder(self) -> Path:
        """Logs of the processes, and the record of executions."""
        return self.settings.data_dir / "demo"

    @property
    def executions(self) -> Path:
        """A line for each execution of a sample job: the id of its run."""
        return self.folder / "executions.txt"

    def log_of(self, name: str) -> Path:
        """The log of a process."""
        return self.folder / f"{name}.log"

    def admin_environ(self) -> dict[str, str]:
        """The environment of the admin."""
        return {
            **self.environ,
            "JOBWHEEL_DATA_DIR": str(self.settings.data_dir),
            "JOBWHEEL_PORT": str(self.settings.port),
            "JOBWHEEL_AUTO_CREATE_GROUPS": "true",
        }

    def executor_environ(self, access_token: Secret) -> dict[str, str]:
        """The environment of the executor. The token goes this way since others can read a command's arguments."""
        return {
            **{name: value for name, value in self.environ.items() if not name.startswith("JOBWHEEL_")},
            "JOBWHEEL_EXECUTOR_APP_NAME": APP_NAME,
            "JOBWHEEL_EXECUTOR_ADMIN": self.url,
            "JOBWHEEL_EXECUTOR_ACCESS_TOKEN": access_token.reveal(),
            "JOBWHEEL_EXECUTOR_PORT": "0",
            "JOBWHEEL_EXECUTOR_LOG_PATH": str(self.settings.data_dir / "executor" / APP_NAME),
            "JOBWHEEL_EXECUTOR_STOP_DEADLINE_S": str(_STOP_DEADLINE_S),
        }


def choose_places(port: int | None, data_dir: Path | None, environ: Mapping[str, str] = os.environ) -> Places:
    """The demo's settings, from its arguments and what it heeds of the environment.

    Raises:
        SettingsError: one of them cannot be used.
        CannotListenError: the port is taken.
    """
    kept = {name: value for name, value in environ.items() if name in _HEEDED or not name.startswith("JOBWHEEL_")}
    wanted = load_settings(kept, {"port": port, "data_dir": data_dir}).settings
    free = _free_port(wanted.port)
    return Places(load_settings(kept, {"port": free, "data_dir": wanted.data_dir}).settings, kept)


def _free_port(port: int) -> int:
    """The port itself, if nobody listens there; for 0 one that is free. An admin that is restarted needs it again."""
    try:
        listener = listen(_HOST, port)
    except OSError as error:
        raise CannotListenError(_HOST, port, error.strerror or str(error)) from error
    with listener:
        chosen: int = listener.getsockname()[1]
    return chosen
