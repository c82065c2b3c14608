"""Jobs of which runs stay in the database until there is room for them."""

from collections.abc import Callable

from jobwheel.admin.domain.ids import JobId


class PutOff:
    """The jobs of which runs were put off, each until what its runs wait for is relieved.

    Such runs are in nobody's memory, where they would take everybody's room: they are pending, and the feeder brings
    them once their job is not listed here any more.
    """

    def __init__(self) -> None:
        self._until: dict[JobId, Callable[[], bool]] = {}

    def add(self, job_id: JobId, is_relieved: Callable[[], bool]) -> None:
        """A run of the job is put off. Of several the first one counts: what came later must not make it wait on."""
        self._until.setdefault(job_id, is_relieved)

    def jobs(self) -> list[JobId]:
        """The jobs whose runs are to be left where they are; those that are relieved are forgotten."""
        relieved = [job_id for job_id, is_relieved in self._until.items() if is_relieved()]
        for job_id in relieved:
            del self._until[job_id]
        return list(self._until)

    def clear(self) -> None:
        self._until.clear()
