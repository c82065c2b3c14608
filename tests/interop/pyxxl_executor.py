"""An executor on pyxxl, until it is told to end.

Arguments: the admin's URL, the token, the port, a folder for its logs. It runs in an environment of its own.
"""

import asyncio
import sys
from pathlib import Path

from pyxxl import ExecutorConfig, PyxxlRunner  # type: ignore[import-not-found]
from pyxxl.ctx import g  # type: ignore[import-not-found]


def main(admin_url: str, token: str, port: str, folder: str) -> None:
    Path(folder).mkdir(exist_ok=True)
    runner = PyxxlRunner(
        ExecutorConfig(
            xxl_admin_baseurl=f"{admin_url}/xxl-job-admin/api/",
            executor_app_name="orders",
            access_token=token,
            executor_listen_host="127.0.0.1",
            executor_listen_port=int(port),
            executor_log_path=f"{folder}/executor.log",
            log_local_dir=f"{folder}/runs",
        )
    )

    @runner.register(name="echo")  # type: ignore[untyped-decorator]
    async def echo() -> str:
        g.logger.info(f"got {g.xxl_run_data.executorParams}")
        return f"got {g.xxl_run_data.executorParams}"

    @runner.register(name="explode")  # type: ignore[untyped-decorator]
    async def explode() -> str:
        raise RuntimeError(f"exploded {g.xxl_run_data.executorParams}")

    @runner.register(name="sleep")  # type: ignore[untyped-decorator]
    async def sleep() -> None:
        g.logger.info("sleeps")
        await asyncio.Event().wait()

    runner.run_executor()


if __name__ == "__main__":
    main(*sys.argv[1:])
