"""The sessions of the command line, one for each admin, in a file that its owner alone can read."""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobwheel.cli.errors import SessionFileError
from jobwheel.kernel.secret import Secret


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session at one admin."""

    url: str
    username: str
    token: Secret
    expires_at: str


class SessionFile:
    """`{"current": url, "sessions": {url: {…}}}`; a session is sent to the admin that gave it and to no other."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def current(self) -> str | None:
        """The admin that somebody signed in at last."""
        current = self._read().get("current")
        return current if isinstance(current, str) else None

    def find(self, url: str) -> StoredSession | None:
        """The session at an admin."""
        entry = self._sessions(self._read()).get(url)
        if entry is None:
            return None
        try:
            return StoredSession(url, entry["username"], Secret(entry["token"]), entry["expires_at"])
        except (KeyError, TypeError) as error:
            raise SessionFileError(str(self.path), "holds no readable session") from error

    def keep(self, session: StoredSession) -> None:
        """Store a session, in place of an older one at the same admin."""
        content = self._read()
        entry = {
            "username": session.username,
            "token": session.token.reveal(),
            "expires_at": session.expires_at,
        }
        sessions = {**self._sessions(content), session.url: entry}
        self._write({"current": session.url, "sessions": sessions})

    def forget(self, url: str) -> None:
        """Remove the session at an admin. It stays the current one: the next command says to sign in there."""
        content = self._read()
        sessions = {other: entry for other, entry in self._sessions(content).items() if other != url}
        self._write({"current": content.get("current"), "sessions": sessions})

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SessionFileError(str(self.path), f"cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise SessionFileError(str(self.path), "is not JSON") from error
        if not isinstance(content, dict):
            raise SessionFileError(str(self.path), "holds no sessions")
        return content

    @staticmethod
    def _sessions(content: Mapping[str, Any]) -> dict[str, Any]:
        sessions = content.get("sessions")
        return sessions if isinstance(sessions, dict) else {}

    def _write(self, content: Mapping[str, object]) -> None:
        fresh = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Made with its mode, and renamed: nobody ever sees it open to others or half written.
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(content, file)
            fresh.replace(self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise SessionFileError(str(self.path), f"cannot be written: {error.strerror}") from error


def session_path(environ: Mapping[str, str]) -> Path:
    """Where the file is: under XDG_CONFIG_HOME, else ~/.config."""
    base = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if Path(base).is_absolute() else Path(environ.get("HOME") or Path.home()) / ".config"
    return folder / "jobwheel" / "session.json"
