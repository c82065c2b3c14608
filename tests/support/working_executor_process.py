"""An executor on the SDK as a process of its own, whose job takes its time: it appends each start and end to files.

`python -m tests.support.working_executor_process {admin's URL} {token} {port} {file of starts} [address]`. The job's
parameter is how many seconds it works. Ends are in the file of starts' name with `.ends`.
"""

import asyncio
import json
import os
import sys

from jobwheel import Executor, JobContext
from jobwheel.kernel.clock import SystemClock

_CLOCK = SystemClock()


class _Lines:
    """Appends one line with one write, so that no line is ever half there."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, context: JobContext) -> None:
        planned_ms = int(context.planned_time.timestamp() * 1000)
        line = {"job": context.job_id, "log": context.log_id, "planned": planned_ms, "at": _CLOCK.now()}
        os.write(self._file, json.dumps(line).encode() + b"\n")


def main(admin: str, token: str, port: str, path: str, address: str | None = None) -> None:
    starts, ends = _Lines(path), _Lines(f"{path}.ends")
    executor = Executor(
        "orders",
        admin,
        token,
        address=address,
        port=int(port),
        log_path=f"{path}.logs",
        heartbeat_s=0.5,
        stop_deadline_s=5,
    )

    @executor.job("settle")
    async def settle(context: JobContext) -> None:
        starts.note(context)
        await asyncio.sleep(float(context.parameter or "0"))  # noqa: TID251 - the work; an executor has no fake clock
        ends.note(context)

    sys.stdout.write("ready\n")
    sys.stdout.flush()
    executor.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
