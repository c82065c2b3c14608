"""What a child run is told of its parent, by executors of ours alone."""

from collections.abc import Iterable, Mapping
from typing import Final

from jobwheel.admin.domain.followup_words import said_by_executor
from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.store.chains import read_results
from jobwheel.admin.store.database import Database
from jobwheel.wire.messages import Parent

NO_RUN: Final = RunId(0)
"""No run has this id."""


async def load_parents(database: Database, run_ids: Iterable[RunId | None]) -> Mapping[RunId, Parent]:
    """What the executors of these runs said at their ends. Nothing is read if there are none.

    Of a run whose row is gone nothing but its id is known.
    """
    wanted = {run_id for run_id in run_ids if run_id is not None}
    if not wanted:
        return {}
    messages = await database.read(read_results, wanted)
    return {run_id: Parent(run_id, said_by_executor(messages.get(run_id))) for run_id in wanted}
