"""A recording executor as a process of its own: it appends each start to a file.

`python -m tests.support.executor_process {admin's URL} {token} {port} {file} [instance]`: one of ours with an instance,
and then it takes batches.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys

from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.client import UncertainError, UnreachableError
from tests.support.recording_executor import Asked, RecordingExecutor

_BEAT_S = 0.5
_CLOCK = SystemClock()


class StartLog:
    """Appends a line for each start. One write each, so that no line is ever half there."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, asked: Asked) -> None:
        body = asked.body
        line = {"job": body["jobId"], "log": body["logId"], "planned": planned_ms(body), "at": asked.at_ms}
        os.write(self._file, json.dumps(line).encode() + b"\n")


def planned_ms(body: dict[str, object]) -> object:
    """The planned time of a schedule-caused run: executors of another make find it in `logDateTime`."""
    return body.get("scheduledTime", body["logDateTime"])


async def serve(admin_url: str, token: str, port: int, path: str, instance: str | None) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    note, ours = StartLog(path).note, instance is not None
    executor = RecordingExecutor(admin_url, token, instance=instance, batch=ours, keeps=False, port=port, on_start=note)
    async with executor:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while not stop.is_set():
            with contextlib.suppress(UnreachableError, UncertainError):
                await executor.post("registry", executor.registration())
            await _CLOCK.wait(_BEAT_S, stop)


if __name__ == "__main__":
    _, url, access_token, own_port, starts, *rest = sys.argv
    asyncio.run(serve(url, access_token, int(own_port), starts, rest[0] if rest else None))
