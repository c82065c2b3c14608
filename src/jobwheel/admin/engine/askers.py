"""The router's questions: which address is alive, or idle, before a run takes off."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.addresses import AddressBook, Candidate
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.departures import Answers, RouteFinder
from jobwheel.admin.engine.executor_client import Answer, AnswerKind, ExecutorClient
from jobwheel.admin.engine.gates import AddressGates
from jobwheel.admin.engine.lanes import Lane
from jobwheel.admin.engine.routing import Chosen, Routers
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.messages import JobQuery

log = get_logger(__name__)


class Asker:
    """Asks executors for a router, as one group. A question that is under way already is not asked twice."""

    def __init__(self, client: ExecutorClient, questions: "Questions", app_name: str) -> None:
        self._client = client
        self._questions = questions
        self._app_name = app_name

    async def beat(self, candidate: Candidate) -> Answer:
        address = candidate.address
        return await self._questions.ask(address, "", lambda: self._client.beat(address, self._app_name))

    async def idle_beat(self, job_id: JobId, candidate: Candidate) -> Answer:
        address, query = candidate.address, JobQuery(job_id)
        return await self._questions.ask(
            address, str(job_id), lambda: self._client.idle_beat(address, self._app_name, query)
        )


class Questions:
    """The questions under way: each once, however many runs wait for its answer, and to an address so many at most."""

    def __init__(self, limit: int) -> None:
        self._gates = AddressGates(limit)
        self._under_way: dict[tuple[str, str], asyncio.Task[Answer]] = {}

    async def ask(self, address: str, about: str, question: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask, or wait for the answer that somebody else is waiting for."""
        task = self._under_way.get((address, about))
        if task is None:
            task = self._under_way[address, about] = asyncio.create_task(self._ask(address, question))
            task.add_done_callback(lambda _: self._under_way.pop((address, about)))
        return await asyncio.shield(task)

    async def stop(self) -> None:
        """Break off those under way."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, address: str, question: Callable[[], Awaitable[Answer]]) -> Answer:
        await self._gates.enter(address)
        try:
            return await question()
        finally:
            self._gates.leave(address)


@dataclass(slots=True)
class _Line:
    """The runs of a lane that wait for somebody to ask for them, and how many workers do."""

    lane: Lane
    runs: deque[tuple[PendingRun, DispatchJob]] = field(default_factory=deque)
    workers: int = 0


class Askers:
    """Asks for runs whose strategy wants it, each with a slot of its lane; `answered` gets what came out."""

    def __init__(
        self,
        client: ExecutorClient,
        book: AddressBook,
        routers: Routers,
        finder: RouteFinder,
        context: EngineContext,
        answered: Callable[[Lane, PendingRun, Answers], None],
    ) -> None:
        self._client = client
        self._book = book
        self._routers = routers
        self._finder = finder
        self._clock = context.clock
        self._answered = answered
        self._questions = Questions(context.limits.address_limit)
        self._lines: dict[str, _Line] = {}
        self._workers: set[asyncio.Task[None]] = set()

    def add(self, lane: Lane, run: PendingRun, job: DispatchJob) -> None:
        line = self._lines.setdefault(lane.name, _Line(lane))
        line.runs.append((run, job))
        if line.workers < lane.limit:
            line.workers += 1
            worker = asyncio.create_task(self._work(line))
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    def clear(self) -> None:
        """Forget the runs that nobody asks for yet."""
        for line in self._lines.values():
            line.runs.clear()

    async def stop(self) -> None:
        """Break off: the runs are pending still."""
        self.clear()
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await self._questions.stop()

    async def _work(self, line: _Line) -> None:
        try:
            while line.runs:
                async with line.lane:
                    if line.runs:
                        run, job = line.runs.popleft()
                        began_s = self._clock.monotonic()
                        chosen = await self._choose(run, job)
                        self._answered(line.lane, run, Answers(chosen, self._clock.monotonic() - began_s))
        finally:
            line.workers -= 1

    async def _choose(self, run: PendingRun, job: DispatchJob) -> Chosen:
        candidates = self._finder.candidates(run, job)
        asker = Asker(self._client, self._questions, self._book.app_name(job.group_id) or "")
        try:
            chosen = await self._routers.choose(job.route_strategy, job.id, candidates, asker)
        except Exception:
            # The run fails and says that nobody said yes; the reason stands in the log.
            log.exception("askers.failed", run_id=run.id, strategy=job.route_strategy)
            return Chosen((), ())
        for address, answer in chosen.asked:
            if answer.kind is AnswerKind.UNREACHABLE:
                # The next run need not wait for it again.
                self._book.mark_unreachable(address)
        return chosen
