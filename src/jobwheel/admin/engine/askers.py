"""The router's questions: which address is alive, or idle, before a run takes off."""

import asyncio
from collections.abc import Awaitable, Callable

from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.addresses import AddressBook, Candidate
from jobwheel.admin.engine.answers import Answers
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.departures import RouteFinder
from jobwheel.admin.engine.executor_answers import Answer, AnswerKind
from jobwheel.admin.engine.executor_client import ExecutorClient
from jobwheel.admin.engine.gates import AddressGates
from jobwheel.admin.engine.lanes import Lane
from jobwheel.admin.engine.line import Line
from jobwheel.admin.engine.routing import Chosen, Routers
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.messages import JobQuery

log = get_logger(__name__)


class Asker:
    """Asks executors for a router, as one group. A question that is under way already is not asked twice.

    Nor is one asked of an address that somebody has found unreachable meanwhile. `is_late` says whether its time is up.
    """

    def __init__(
        self,
        client: ExecutorClient,
        questions: "Questions",
        book: AddressBook,
        group_id: GroupId,
        context: EngineContext,
    ) -> None:
        self._client = client
        self._questions = questions
        self._book = book
        self._group_id = group_id
        self._app_name = book.app_name(group_id) or ""
        self._out = Answer(AnswerKind.UNREACHABLE, 500, context.messages.just_out())
        self._clock = context.clock
        self._until_s = context.clock.monotonic() + context.limits.search_s

    @property
    def is_late(self) -> bool:
        return self._clock.monotonic() >= self._until_s

    async def beat(self, candidate: Candidate) -> Answer:
        address = candidate.address
        return await self._ask(address, "", lambda: self._client.beat(address, self._app_name))

    async def idle_beat(self, job_id: JobId, candidate: Candidate) -> Answer:
        address, query = candidate.address, JobQuery(job_id)
        return await self._ask(address, str(job_id), lambda: self._client.idle_beat(address, self._app_name, query))

    async def _ask(self, address: str, about: str, question: Callable[[], Awaitable[Answer]]) -> Answer:
        if self._book.is_out(self._group_id, address):
            return self._out
        answer = await self._questions.ask(address, about, question)
        if answer.kind is AnswerKind.UNREACHABLE:
            # At once: other runs need not wait for it again, however long this one asks on.
            self._book.mark_unreachable(address)
        return answer


class Questions:
    """The questions under way: each once, however many runs wait for its answer, and as many as the gates let in."""

    def __init__(self, gates: AddressGates) -> None:
        self._gates = gates
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


_Line = Line[GroupId, tuple[PendingRun, DispatchJob]]
"""The runs of a lane and a group that wait for somebody to ask for them."""


class Askers:
    """Asks for runs whose strategy wants it, each with a slot of its lane; `answered` gets what came out.

    A group whose executors hang must not fill the memory: of a quarter of the wheel's capacity in all, one that has its
    share has no place for more runs.
    """

    def __init__(
        self,
        client: ExecutorClient,
        book: AddressBook,
        routers: Routers,
        finder: RouteFinder,
        context: EngineContext,
        gates: AddressGates,
        answered: Callable[[Lane, PendingRun, Answers], None],
    ) -> None:
        self._client = client
        self._book = book
        self._routers = routers
        self._finder = finder
        self._context = context
        self._clock = context.clock
        self._answered = answered
        self._questions = Questions(gates)
        self._share = context.limits.address_limit
        self._most_waiting = context.limits.wheel_capacity // 4
        self._waiting = 0
        self._lines: dict[tuple[str, GroupId], _Line] = {}
        self._workers: set[asyncio.Task[None]] = set()

    def has_place(self, lane: Lane, group_id: GroupId) -> bool:
        """Whether another run of the group may be held."""
        return self._waiting < self._most_waiting or self._waiting_of(lane, group_id) < self._share

    def is_relieved(self, lane: Lane, group_id: GroupId) -> bool:
        """Whether a group that had no place has a good deal of it again."""
        return self._waiting <= self._most_waiting // 2 or self._waiting_of(lane, group_id) <= self._share // 2

    def add(self, lane: Lane, run: PendingRun, job: DispatchJob) -> None:
        line = self._lines.setdefault((lane.name, job.group_id), _Line(lane, job.group_id))
        line.items.append((run, job))
        self._waiting += 1
        if line.workers < lane.limit:
            line.workers += 1
            worker = asyncio.create_task(self._work(line))
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    def waiting(self, lane: Lane) -> int:
        """How many runs of the lane nobody asks for yet."""
        return sum(len(line.items) for line in self._lines.values() if line.lane is lane)

    def clear(self) -> None:
        """Forget the runs that nobody asks for yet."""
        for line in self._lines.values():
            line.items.clear()
        self._waiting = 0

    def _waiting_of(self, lane: Lane, group_id: GroupId) -> int:
        line = self._lines.get((lane.name, group_id))
        return 0 if line is None else len(line.items)

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
            while line.items:
                await line.lane.enter(line.key)
                try:
                    await self._ask_next(line)
                finally:
                    line.lane.leave(line.key)
        finally:
            line.workers -= 1
            if not line.workers and not line.items:
                self._lines.pop((line.lane.name, line.key), None)

    async def _ask_next(self, line: _Line) -> None:
        if line.items:
            run, job = line.items.popleft()
            self._waiting -= 1
            began_s = self._clock.monotonic()
            chosen = await self._choose(run, job)
            self._answered(line.lane, run, Answers(chosen, self._clock.monotonic() - began_s))

    async def _choose(self, run: PendingRun, job: DispatchJob) -> Chosen:
        candidates = self._finder.candidates(run, job)
        asker = Asker(self._client, self._questions, self._book, job.group_id, self._context)
        try:
            return await self._routers.choose(job.route_strategy, job.id, candidates, asker)
        except Exception:
            # The run fails and says that nobody said yes; the reason stands in the log.
            log.exception("askers.failed", run_id=run.id, strategy=job.route_strategy)
            return Chosen((), ())
