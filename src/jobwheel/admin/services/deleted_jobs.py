"""Removes what deleted jobs leave behind."""

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.services.slices import PAUSE_S, Slices
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.reports import recount_slices
from jobwheel.admin.store.run_list import delete_runs_of_job
from jobwheel.admin.store.scripts import delete_versions_of_job
from jobwheel.admin.store.settings_table import (
    DELETED_JOB_PREFIX,
    delete_setting,
    list_settings,
    read_setting,
    write_setting,
)

_SLICES_PER_PASS = 50
_HAD_RUNS = "had runs"


class DeletedJobs:
    """Removes the run rows of deleted jobs in small slices, so that nothing else waits for long; then their scripts.

    Any node may do it.
    """

    def __init__(self, database: Database, pause_s: float = PAUSE_S) -> None:
        self._database = database
        self._slices = Slices(database, pause_s)

    async def run_once(self) -> int:
        """Remove some rows; says how many. What is left waits for the next pass."""
        removed = 0
        for _ in range(_SLICES_PER_PASS):
            names = await self._database.read(list_settings, DELETED_JOB_PREFIX)
            if not names:
                break
            most = self._slices.size
            removed += await self._slices.change(most, remove_slice, names[0], most)
            await self._slices.rest()
        return removed


def remove_slice(connection: Connection, name: str, most: int) -> int:
    """Remove some runs of a deleted job, and with the last ones its scripts; says how many runs."""
    job_id = JobId(int(name.removeprefix(DELETED_JOB_PREFIX)))
    removed = delete_runs_of_job(connection, job_id, most)
    if removed == most:
        write_setting(connection, name, _HAD_RUNS)
        return removed
    if removed or read_setting(connection, name) == _HAD_RUNS:
        recount_slices(connection)
    delete_versions_of_job(connection, job_id)
    delete_setting(connection, name)
    return removed
