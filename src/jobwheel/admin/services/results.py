"""The intake of results: decoded, judged, and acknowledged after the commit."""

from collections.abc import Sequence

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.run import outcome_of_result
from jobwheel.admin.domain.writes import Settlement, cut_message
from jobwheel.admin.engine.run_log_writer import RunLogWriter
from jobwheel.admin.services.progress import ProgressBook
from jobwheel.kernel.clock import Clock
from jobwheel.wire.messages import FAILURE, Result


class Results:
    """Settles runs by what executors report of them. The first result wins; repeats change nothing."""

    def __init__(self, clock: Clock, writer: RunLogWriter, progress: ProgressBook) -> None:
        self._clock = clock
        self._writer = writer
        self._progress = progress

    async def settle(self, results: Sequence[Result]) -> None:
        """Return once the results are committed, and only then may they be acknowledged.

        Results of runs that are not known (deleted with their job, or of another installation) are dropped: sending
        them again could never succeed.
        """
        now_ms = self._clock.now()
        await self._writer.write_all([_settlement(result, now_ms) for result in results])
        self._progress.forget(RunId(result.log_id) for result in results)


def _settlement(result: Result, now_ms: int) -> Settlement:
    return Settlement(
        run_id=RunId(result.log_id),
        ended_ms=now_ms,
        # To the reference, a result of 0 is none yet, and the run runs.
        code=result.code or FAILURE,
        outcome=outcome_of_result(result.code, result.message),
        message=cut_message(result.message or ""),
    )
