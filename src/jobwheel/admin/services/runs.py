"""Looking at runs."""

from collections.abc import Sequence

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.run import Run
from jobwheel.admin.services.errors import NotFoundError
from jobwheel.admin.services.progress import ProgressBook, RunProgress
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.run_list import RunFilter, get_run, list_runs


class Runs:
    """The use cases of the run log."""

    def __init__(self, database: Database, progress: ProgressBook) -> None:
        self._database = database
        self._progress = progress

    async def get(self, run_id: RunId) -> Run:
        """A run.

        Raises:
            NotFoundError: there is none of this id.
        """
        run = await self._database.read(get_run, run_id)
        if run is None:
            raise NotFoundError("run", run_id)
        return run

    def progress(self, run: Run) -> RunProgress | None:
        """How far a run is, if this node was told and the run is not done."""
        return self._progress.of(run)

    async def page(self, wanted: RunFilter, before_id: int | None, limit: int) -> Sequence[Run]:
        """Runs, newest first."""
        return await self._database.read(list_runs, wanted, before_id, limit)
