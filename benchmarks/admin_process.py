"""The admin for measurements, as the command line starts it: settings from the environment."""

import os
import sys

import uvloop

from jobwheel.admin.server import AdminServer
from jobwheel.admin.settings import load_settings
from jobwheel.kernel.logging import configure


async def _serve() -> None:
    await AdminServer(load_settings(os.environ, {}), lambda line: print(line, file=sys.stderr)).run()


def main() -> None:
    configure("WARNING")
    uvloop.run(_serve())


if __name__ == "__main__":
    main()
