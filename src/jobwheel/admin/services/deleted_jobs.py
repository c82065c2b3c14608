"""Removes what deleted jobs leave behind."""

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.run_list import delete_runs_of_job
from jobwheel.admin.store.scripts import delete_versions_of_job
from jobwheel.admin.store.settings_table import DELETED_JOB_PREFIX, delete_setting, list_settings

_SLICE = 200
_SLICES_PER_PASS = 50


class DeletedJobs:
    """Removes the run rows of deleted jobs in small slices, so that nothing else waits for long; then their scripts.

    Any node may do it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def run_once(self) -> int:
        """Remove some rows; says how many. What is left waits for the next pass."""
        removed = 0
        for _ in range(_SLICES_PER_PASS):
            names = await self._database.read(list_settings, DELETED_JOB_PREFIX)
            if not names:
                break
            removed += await self._database.write(_remove_slice, names[0])
        return removed


def _remove_slice(connection: Connection, name: str) -> int:
    job_id = JobId(int(name.removeprefix(DELETED_JOB_PREFIX)))
    removed = delete_runs_of_job(connection, job_id, _SLICE)
    if removed < _SLICE:
        delete_versions_of_job(connection, job_id)
        delete_setting(connection, name)
    return removed
