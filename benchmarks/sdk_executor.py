"""An executor on the SDK, for measurements.

`python -m benchmarks.sdk_executor PORT ADMIN TOKEN RECORD_FILE APP_NAME`
"""

import sys
import time
from pathlib import Path

from jobwheel import Executor, JobContext


def main() -> None:
    port, admin, token, record, app_name = sys.argv[1:]
    executions: list[tuple[int, int, int]] = []
    executor = Executor(app_name=app_name, admin=admin, access_token=token, port=int(port), log_path=f"{record}.logs")

    @executor.job("bench")
    async def bench(context: JobContext) -> None:
        arrived_ms = time.time_ns() // 1_000_000
        planned_ms = int(context.planned_time.timestamp() * 1000)
        executions.append((context.log_id, planned_ms, arrived_ms))

    @executor.job("asyncNothing")
    async def async_nothing() -> None:
        pass

    @executor.job("syncNothing")
    def sync_nothing() -> None:
        pass

    executor.run()
    with Path(record).open("w") as file:
        file.writelines(f"{log_id} {planned_ms} {arrived_ms}\n" for log_id, planned_ms, arrived_ms in executions)


if __name__ == "__main__":
    main()
