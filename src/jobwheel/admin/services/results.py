"""The intake of results: decoded, judged, and acknowledged after the commit."""

from collections.abc import Sequence
from typing import Final

from jobwheel.admin.domain.ids import GroupId, RunId
from jobwheel.admin.domain.run import outcome_of_result
from jobwheel.admin.domain.writes import Settlement, cut_message
from jobwheel.admin.engine.run_log_writer import RunLogWriter
from jobwheel.admin.services.progress import ProgressBook
from jobwheel.admin.store.belonging import known_runs
from jobwheel.admin.store.database import Database
from jobwheel.kernel.clock import Clock
from jobwheel.wire.messages import FAILURE, Result

_SLICE: Final = 1000


class Results:
    """Settles runs by what executors report of them. The first result wins; repeats change nothing."""

    def __init__(self, database: Database, clock: Clock, writer: RunLogWriter, progress: ProgressBook) -> None:
        self._database = database
        self._clock = clock
        self._writer = writer
        self._progress = progress

    async def settle(self, results: Sequence[Result], group_id: GroupId | None = None) -> list[RunId]:
        """Return once the results are committed, and only then may they be acknowledged.

        Results of runs that are not known (deleted with their job, or of another installation) are dropped: sending
        them again could never succeed. With a `group_id` (a group's own credentials) those of other groups' runs too.
        The answer is which runs these are.
        """
        now_ms = self._clock.now()
        idle = await self._writer.write_all([_settlement(result, now_ms, group_id) for result in results])
        self._progress.forget((RunId(result.log_id) for result in results), group_id)
        return await self._unknown(list(dict.fromkeys(idle)), group_id)

    async def _unknown(self, run_ids: Sequence[RunId], group_id: GroupId | None) -> list[RunId]:
        """Those of the runs that are not there; the results of the others were repeats."""
        known: set[RunId] = set()
        for first in range(0, len(run_ids), _SLICE):
            known |= await self._database.read(known_runs, run_ids[first : first + _SLICE], group_id)
        return [each for each in run_ids if each not in known]


def _settlement(result: Result, now_ms: int, group_id: GroupId | None) -> Settlement:
    return Settlement(
        run_id=RunId(result.log_id),
        ended_ms=now_ms,
        # To the reference, a result of 0 is none yet, and the run runs.
        code=result.code or FAILURE,
        outcome=outcome_of_result(result.code, result.message),
        message=cut_message(result.message or ""),
        group_id=group_id,
    )
