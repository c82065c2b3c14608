"""The admin as a process of its own.

`python -m tests.support.admin_process {data directory} {port} {token} [database URL]`.
"""

import asyncio
import sys

import uvloop

from jobwheel.admin.server import AdminServer
from jobwheel.admin.settings import load_settings
from jobwheel.kernel.logging import configure


def main(data_dir: str, port: str, token: str, database_url: str | None = None) -> None:
    configure("WARNING")
    wanted = {"data_dir": data_dir, "port": int(port), "access_token": token, "database_url": database_url}
    # The webhooks of tests are on this machine.
    wanted["alarms_to_private_addresses"] = True
    loaded = load_settings({}, wanted)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(AdminServer(loaded, _announce).run())


def _announce(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
