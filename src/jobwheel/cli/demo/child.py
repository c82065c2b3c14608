"""A process of the demo's own."""

import asyncio
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobwheel.cli.demo.errors import ChildFailedError
from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.errors import JobwheelError
from jobwheel.kernel.service import Service

_MOST_FAILURES: Final = 4
# Who lives longer than this is not failing at its start.
_LONG_LIFE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """What to run: a module of ours with arguments. `stop_s`: how long it may take to stop before it is killed."""

    name: str
    arguments: Sequence[str]
    environ: Mapping[str, str]
    log_path: Path
    stop_s: float


class Child(Service):
    """Keeps one process running, and stops it.

    The process stands in a session of its own, so that Ctrl-C in the terminal reaches the demo alone, which stops its
    processes in the right order. It ends when its standard input does, so it never outlives the demo.

    Args:
        plan: what to run.
        say: is told when the process ended by itself and is started again.
        give_up: is told when it does not stay up.
    """

    def __init__(
        self, plan: ChildPlan, clock: Clock, say: Callable[[str], None], give_up: Callable[[JobwheelError], None]
    ) -> None:
        super().__init__(f"demo.{plan.name}", clock)
        self._plan = plan
        self._say = say
        self._give_up = give_up
        self._backoff = Backoff()
        self._process: Process | None = None

    async def on_start(self) -> None:
        self._process = await self._spawn()
        self.supervise("watch", self._watch)

    async def on_stop(self) -> None:
        # First nobody starts it again; a start under way is undone.
        await self.cancel("watch")
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM)
        waiting = asyncio.ensure_future(process.wait())
        done, _ = await asyncio.wait({waiting}, timeout=self._plan.stop_s)
        if not done:
            self._say(f"the {self._plan.name} did not stop in time and is killed; its log is {self._plan.log_path}")
            self.kill()
            await waiting

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def _watch(self) -> None:
        failures = 0
        while self._process is not None:
            began = self.clock.monotonic()
            code = await self._process.wait()
            failures = 1 if self.clock.monotonic() - began > _LONG_LIFE_S else failures + 1
            how = _how_it_ended(code)
            if failures > _MOST_FAILURES:
                self._give_up(ChildFailedError(self._plan.name, f"{how}{self._last_words()}", self._plan.log_path))
                return
            self._say(f"the {self._plan.name} {how}; starting it again")
            if failures > 1:
                await self.clock.wait(self._backoff.delay_s(failures))
            self._process = await self._spawn()

    async def _spawn(self) -> Process:
        # -P: the folder that the demo is started in is no place to find our modules, or the library's, in.
        with self._plan.log_path.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                *self._plan.arguments,
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=log,
                env=dict(self._plan.environ),
                start_new_session=True,
            )

    def _last_words(self) -> str:
        lines = self._plan.log_path.read_text("utf-8", errors="replace").strip().splitlines()
        return f" ({lines[-1]})" if lines else ""


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"ended by itself with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
