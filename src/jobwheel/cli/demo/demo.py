"""The demo: prepares, starts its two processes and the sample jobs, watches, stops, judges."""

import asyncio
import contextlib
import json
import signal
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final

from jobwheel.cli.demo.child import Child, ChildPlan
from jobwheel.cli.demo.errors import NotReadyError
from jobwheel.cli.demo.evidence import gather, read_runs, unedited
from jobwheel.cli.demo.feed import RunFeed
from jobwheel.cli.demo.line import Line
from jobwheel.cli.demo.places import Places, choose_places
from jobwheel.cli.demo.preparation import Prepared, prepare
from jobwheel.cli.demo.sample_jobs import WatchedJob, has_live_executor, make_group, make_jobs, start_jobs, stop_jobs
from jobwheel.cli.demo.screen import Screen, new_screen
from jobwheel.cli.demo.verdict import Span, Verdict, judge
from jobwheel.cli.errors import AdminUnreachableError
from jobwheel.cli.output import complain
from jobwheel.kernel.clock import Clock, SystemClock
from jobwheel.kernel.errors import JobwheelError

INTERRUPTED: Final = 130
_READY_S: Final = 20.0
_LOOK_S: Final = 0.5
_ASK_S: Final = 0.1
_SETTLE_S: Final = 15.0
_FAREWELL_S: Final = 1.0
_EXECUTOR_STOP_S: Final = 2.2
_ADMIN_STOP_S: Final = 1.5
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def run_demo(port: int | None, data_dir: Path | None, seconds: int | None) -> int:
    """Run the demo until it is stopped, or for some seconds; return the exit code.

    Raises:
        JobwheelError: it cannot start, or one of its processes does not stay up.
    """
    places = choose_places(port, data_dir)
    return asyncio.run(_run(places, seconds, SystemClock()))


async def _run(places: Places, seconds: int | None, clock: Clock) -> int:
    prepared = await prepare(places, clock)
    screen = new_screen()
    _greet(places, prepared)
    demo = Demo(places, prepared, clock, screen)
    verdict = await demo.run(seconds)
    if verdict is not None:
        print(json.dumps(asdict(verdict)), flush=True)
        return 0 if verdict.clean else 1
    if seconds is not None:
        complain("stopped before its time, so there is no verdict")
        return INTERRUPTED
    return 0


class Demo:
    """One run of the demo."""

    def __init__(self, places: Places, prepared: Prepared, clock: Clock, screen: Screen) -> None:
        self._places = places
        self._prepared = prepared
        self._clock = clock
        self._screen = screen
        self._line = Line(places, prepared.session, clock)
        self._admin = self._child("admin", _admin_arguments(), places.admin_environ(), _ADMIN_STOP_S)
        environ = places.executor_environ(prepared.access_token)
        self._executor = self._child("executor", _executor_arguments(places), environ, _EXECUTOR_STOP_S)
        self._job_ids: list[int] = []
        self._work: asyncio.Task[Verdict | None] | None = None
        self._failure: JobwheelError | None = None

    async def run(self, seconds: int | None) -> Verdict | None:
        """Run; None if it was stopped by a signal.

        Raises:
            JobwheelError: a process of the demo does not stay up, or does not get ready.
        """
        self._work = asyncio.create_task(self._worked(seconds), name="demo")
        with _on_signals(self._interrupt), self._screen:
            try:
                return await self._work
            except asyncio.CancelledError:
                if self._failure is not None:
                    raise self._failure from None
                return None
            finally:
                await self._stop()

    async def _worked(self, seconds: int | None) -> Verdict | None:
        await self._admin.start()
        await self._until(self._admin_answers, "the admin does not answer", "admin")
        group_id = await self._line.ask(make_group)
        self._job_ids = await self._line.ask(make_jobs, group_id)
        await self._executor.start()
        await self._until(
            lambda: self._line.ask(has_live_executor, group_id), "the executor does not register", "executor"
        )
        from_ms = self._clock.now()
        jobs = await self._line.ask(start_jobs, self._job_ids, self._prepared.zone)
        feed = RunFeed(group_id, {job.id: job.name for job in jobs}, from_ms)
        await self._watch(feed, seconds)
        return await self._verdict(jobs, group_id, from_ms, feed)

    async def _watch(self, feed: RunFeed, seconds: int | None) -> None:
        """Show the runs, for some seconds or for ever."""
        end = None if seconds is None else self._clock.monotonic() + seconds
        while end is None or self._clock.monotonic() < end:
            await self._look(feed)
            left_s = _LOOK_S if end is None else end - self._clock.monotonic()
            await self._clock.wait(min(_LOOK_S, left_s))

    async def _look(self, feed: RunFeed) -> None:
        # While the admin is away, its process is started again; there is nothing to see meanwhile.
        with contextlib.suppress(AdminUnreachableError):
            self._screen.show(await self._line.ask(feed.look, self._clock.now()), feed)

    async def _verdict(self, jobs: list[WatchedJob], group_id: int, from_ms: int, feed: RunFeed) -> Verdict:
        await self._until(self._admin_answers, "the admin does not answer", "admin")
        jobs = await self._line.ask(unedited, jobs)
        span = Span(from_ms, self._clock.now())
        await self._line.ask(stop_jobs, self._job_ids)
        deadline = self._clock.monotonic() + _SETTLE_S
        while self._clock.monotonic() < deadline:
            await self._look(feed)
            runs = await self._line.ask(read_runs, group_id, span.from_ms, span.until_ms)
            if all(run.outcome is not None for run in runs):
                break
            await self._clock.wait(_ASK_S)
        return judge(jobs, await self._line.ask(gather, jobs, group_id, span, self._places.executions))

    async def _stop(self) -> None:
        """Jobs first, so that no run is planned that nobody takes; then the executor, whose last results go out."""
        if self._admin.running:
            with contextlib.suppress(JobwheelError, TimeoutError):
                async with asyncio.timeout(_FAREWELL_S):
                    await self._line.ask(stop_jobs, self._job_ids)
                    await self._line.sign_out()
        await self._executor.stop()
        await self._admin.stop()
        self._line.close()

    async def _until(self, condition: Callable[[], Awaitable[bool]], complaint: str, name: str) -> None:
        deadline = self._clock.monotonic() + _READY_S
        while self._clock.monotonic() < deadline:
            with contextlib.suppress(AdminUnreachableError):
                if await condition():
                    return
            await self._clock.wait(_ASK_S)
        raise NotReadyError(complaint, _READY_S, self._places.log_of(name))

    async def _admin_answers(self) -> bool:
        await self._line.ask(lambda rest: rest.get("/api/v1/session"))
        return True

    def _child(self, name: str, arguments: list[str], environ: dict[str, str], stop_s: float) -> Child:
        plan = ChildPlan(name, arguments, environ, self._places.log_of(name), stop_s)
        return Child(plan, self._clock, self._screen.say, self._give_up)

    def _give_up(self, failure: JobwheelError) -> None:
        self._failure = failure
        if self._work is not None:
            self._work.cancel()

    def _interrupt(self) -> None:
        """The first signal stops everything in order, a second one at once."""
        assert self._work is not None
        if self._work.done() or self._work.cancelling():
            self._executor.kill()
            self._admin.kill()
        self._work.cancel()


def _admin_arguments() -> list[str]:
    return ["jobwheel", "admin", "--stop-on-stdin-end"]


def _executor_arguments(places: Places) -> list[str]:
    return ["jobwheel.cli.demo.executor_process", str(places.executions)]


def _greet(places: Places, prepared: Prepared) -> None:
    print(f"Jobwheel runs at {places.url}, its data and logs are in {places.settings.data_dir}")
    if prepared.first_password is not None:
        print(f"Sign in as admin with the password {prepared.first_password.reveal()} (made just now, shown only now)")
    else:
        print(
            f"Sign in as admin; for a new password: jobwheel users password admin --data-dir {places.settings.data_dir}"
        )
    print("Ctrl-C stops everything", flush=True)


@contextlib.contextmanager
def _on_signals(interrupt: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
