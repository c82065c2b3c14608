"""The demo's executor: `python -m jobwheel.cli.demo.executor_process FILE`, with its settings in the environment."""

import sys
from pathlib import Path

from jobwheel import Executor
from jobwheel.cli.demo.handlers import Executions, add_sample_handlers
from jobwheel.cli.lifeline import stop_when_stdin_ends
from jobwheel.kernel.errors import JobwheelError


def main(arguments: list[str]) -> int:
    """Run until told to stop, or until the demo is gone; return the exit code."""
    stop_when_stdin_ends()
    try:
        executor = Executor()
        add_sample_handlers(executor, Executions(Path(arguments[0])))
        executor.run()
    except JobwheelError as error:
        print(f"jobwheel: {error.message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
