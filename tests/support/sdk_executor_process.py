"""An executor on the SDK as a process of its own: it appends each start to a file.

`python -m tests.support.sdk_executor_process {admins' URLs, comma separated} {token} {port} {file}`. The job's
parameter is how many of its first tries fail.
"""

import json
import os
import sys

from jobwheel import Executor, JobContext
from jobwheel.kernel.clock import SystemClock


def main(admins: str, token: str, port: str, path: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    clock = SystemClock()
    executor = Executor(
        "orders", admins.split(","), token, port=int(port), log_path=f"{path}.{port}", heartbeat_s=1, stop_deadline_s=5
    )

    @executor.job("settle")
    def settle(context: JobContext) -> None:
        planned_ms = int(context.planned_time.timestamp() * 1000)
        line = {"job": context.job_id, "log": context.log_id, "planned": planned_ms, "at": clock.now()}
        # One write each, so that no line is ever half there.
        os.write(file, json.dumps(line).encode() + b"\n")
        if context.attempt <= int(context.parameter or "0"):
            raise RuntimeError(f"try {context.attempt} is to fail")

    sys.stdout.write("ready\n")
    sys.stdout.flush()
    executor.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
