"""Looking at runs."""

from collections.abc import Sequence

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.run import Chain, Run
from jobwheel.admin.services.errors import NotFoundError
from jobwheel.admin.services.progress import ProgressBook, RunProgress
from jobwheel.admin.services.run_waits import RunWaits
from jobwheel.admin.services.scoped import Scoped
from jobwheel.admin.store.chain_list import load_chain
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.run_list import RunFilter, get_run, list_runs


class Runs(Scoped):
    """The use cases of the run log."""

    def __init__(self, database: Database, progress: ProgressBook, waits: RunWaits) -> None:
        self._database = database
        self._waits = waits
        self._progress = progress

    async def get(self, run_id: RunId) -> Run:
        """A run.

        Raises:
            NotFoundError: there is none of this id.
        """
        run = await self._database.read(get_run, run_id)
        if run is None or self.hides(run.group_id):
            raise NotFoundError("run", run_id)
        return run

    async def ended(self, run_id: RunId, wait_s: float) -> Run:
        """A run, once it is done or `wait_s` seconds are over, whichever comes first.

        Raises:
            NotFoundError: there is none of this id, or it is gone meanwhile.
            TooManyWaitingError: too many wait already.
        """
        run = await self.get(run_id)
        if run.phase is None or wait_s <= 0:
            return run
        await self._waits.wait(run_id, wait_s)
        return await self.get(run_id)

    async def chain(self, run_id: RunId) -> Chain:
        """What a run comes of, and what came of it; what is of groups that do not exist here is left out.

        Raises:
            NotFoundError: there is none of this id.
        """
        return await self._database.read(load_chain, await self.get(run_id), self.group_ids)

    def progress(self, run: Run) -> RunProgress | None:
        """How far a run is, if this node was told and the run is not done."""
        return self._progress.of(run)

    async def page(self, wanted: RunFilter, before_id: int | None, limit: int) -> Sequence[Run]:
        """Runs, newest first."""
        return await self._database.read(list_runs, wanted, before_id, limit)
