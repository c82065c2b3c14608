"""The router's questions: which address is alive, or idle, before a run takes off."""

import asyncio
from collections import deque
from collections.abc import Callable

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.addresses import AddressBook, Candidate
from jobwheel.admin.engine.departures import Answers, RouteFinder
from jobwheel.admin.engine.executor_client import Answer, AnswerKind, ExecutorClient
from jobwheel.admin.engine.lanes import Lane
from jobwheel.admin.engine.routing import Chosen, Routers
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.messages import JobQuery

log = get_logger(__name__)

_Question = tuple[PendingRun, DispatchJob]


class Asker:
    """Asks executors for a router, as one group."""

    def __init__(self, client: ExecutorClient, app_name: str) -> None:
        self._client = client
        self._app_name = app_name

    async def beat(self, candidate: Candidate) -> Answer:
        return await self._client.beat(candidate.address, self._app_name)

    async def idle_beat(self, job_id: JobId, candidate: Candidate) -> Answer:
        return await self._client.idle_beat(candidate.address, self._app_name, JobQuery(job_id))


class Askers:
    """Asks for runs whose strategy wants it, each with a slot of its lane; `answered` gets what came out."""

    def __init__(
        self,
        client: ExecutorClient,
        book: AddressBook,
        routers: Routers,
        finder: RouteFinder,
        clock: Clock,
        answered: Callable[[Lane, PendingRun, Answers], None],
    ) -> None:
        self._client = client
        self._book = book
        self._routers = routers
        self._finder = finder
        self._clock = clock
        self._answered = answered
        self._questions: dict[Lane, deque[_Question]] = {}
        self._workers: dict[asyncio.Task[None], Lane] = {}

    def add(self, lane: Lane, run: PendingRun, job: DispatchJob) -> None:
        questions = self._questions.setdefault(lane, deque())
        questions.append((run, job))
        if sum(of is lane for of in self._workers.values()) < lane.limit:
            worker = asyncio.create_task(self._work(lane, questions))
            self._workers[worker] = lane
            worker.add_done_callback(self._workers.pop)

    def clear(self) -> None:
        """Forget the runs that nobody asks for yet."""
        for questions in self._questions.values():
            questions.clear()

    async def stop(self) -> None:
        """Break off: the runs are pending still."""
        self.clear()
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, lane: Lane, questions: deque[_Question]) -> None:
        while questions:
            async with lane:
                if questions:
                    run, job = questions.popleft()
                    began_s = self._clock.monotonic()
                    chosen = await self._choose(run, job)
                    self._answered(lane, run, Answers(chosen, self._clock.monotonic() - began_s))

    async def _choose(self, run: PendingRun, job: DispatchJob) -> Chosen:
        candidates = self._finder.candidates(run, job)
        asker = Asker(self._client, self._book.app_name(job.group_id) or "")
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
