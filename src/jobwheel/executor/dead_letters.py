"""Results that no admin can ever take: they are written down for people, and hold up no others."""

import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobwheel.executor.ledger import RunKey
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.codec import encode
from jobwheel.wire.messages import Result

log = get_logger(__name__)

MOST_BYTES: Final = 1024 * 1024
_MOST_REFUSED: Final = 1000
_HOPELESS_REFUSALS: Final = 5
_HOPELESS_S: Final = 3600.0


class DeadLetters:
    """A file with one JSON object for each result, and a second one with the older ones: `{path}.1`.

    Bounded: when the first has grown to `most_bytes` it takes the second's place.
    """

    def __init__(self, path: Path, clock: Clock, most_bytes: int = MOST_BYTES) -> None:
        self._path = path
        self._clock = clock
        self._most_bytes = most_bytes

    def add(self, result: Result, admin: str, reason: str) -> None:
        """Write a result down. Never raises: a disk that refuses is reported, and the log still names the run."""
        log.error("callback.dead_letter", log_id=result.log_id, admin=admin, reason=reason, file=self._path)
        letter = {
            "at": self._clock.now(),
            "logId": result.log_id,
            "logDateTime": result.log_date_time,
            "handleCode": result.code,
            "handleMsg": result.message,
            "admin": admin,
            "reason": reason,
        }
        try:
            self._append(encode(letter) + b"\n")
        except OSError as error:
            log.warning("callback.dead_letter_not_written", log_id=result.log_id, file=self._path, error=str(error))

    def _append(self, line: bytes) -> None:
        if self._path.exists() and self._path.stat().st_size + len(line) > self._most_bytes:
            self._path.replace(self._path.with_name(self._path.name + ".1"))
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)


@dataclass(slots=True)
class _Refused:
    since_s: float
    times: int
    acceptances: int


class Refusals:
    """Tells a result that admins can never take from admins that take nothing at the moment.

    Such a one was refused alone, by every admin, five times and for an hour at least, and each time after other results
    had been taken meanwhile. The newest 1,000 are remembered.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._acceptances = 0
        self._refused: OrderedDict[RunKey, _Refused] = OrderedDict()

    def accepted(self, keys: list[RunKey]) -> None:
        """Admins have taken these."""
        self._acceptances += 1
        if self._refused:
            for key in keys:
                self._refused.pop(key, None)

    def is_hopeless(self, key: RunKey) -> bool:
        """Count one more refusal of a result by every admin; True if it can never be accepted."""
        now = self._clock.monotonic()
        refused = self._refused.setdefault(key, _Refused(now, 0, -1))
        if refused.acceptances < self._acceptances:
            refused.times += 1
            refused.acceptances = self._acceptances
        if len(self._refused) > _MOST_REFUSED:
            self._refused.popitem(last=False)
        hopeless = refused.times >= _HOPELESS_REFUSALS and now - refused.since_s >= _HOPELESS_S
        if hopeless:
            self._refused.pop(key, None)
        return hopeless
