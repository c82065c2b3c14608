"""Reading what a run wrote, from the executor that has it."""

from typing import Protocol

from jobwheel.admin.domain.group import AddressType
from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.run import Phase, Run
from jobwheel.admin.services.errors import ExecutorUnreachableError, NotFoundError
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.groups import get_group, list_registrations
from jobwheel.admin.store.run_list import get_run
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.errors import JobwheelError
from jobwheel.wire.messages import SUCCESS, LogPage, LogQuery


class RunLogSource(Protocol):
    """Asks an executor for a page of a run's log."""

    async def read_log(self, address: str, app_name: str, query: LogQuery) -> LogPage:
        """The lines from `query.from_line` on, as many as the executor gives at once.

        Raises:
            JobwheelError: the executor cannot be reached, gives no usable answer, or refuses.
        """
        ...


class RunLogs:
    """The use case of a run's log."""

    def __init__(self, database: Database, zone: InstallationZone, source: RunLogSource) -> None:
        self._database = database
        self._zone = zone
        self._source = source

    async def read(self, run_id: RunId, from_line: int) -> LogPage:
        """Lines of a run's log from `from_line` (counted from 1) on; `is_end` once nothing more can come.

        A run that no executor accepted shows the message of its dispatch instead.

        Raises:
            NotFoundError: there is no such run.
            ExecutorUnreachableError: the executor that has the log cannot be asked.
        """
        run, app_name, address = await self._database.read(self._find, run_id)
        if not _was_accepted(run) or run.executor_address is None or run.triggered_ms is None:
            return _message_page(run, from_line)
        if address is None:
            raise ExecutorUnreachableError(run.executor_address, "it is not registered any more")
        try:
            page = await self._source.read_log(address, app_name, LogQuery(run.id, run.triggered_ms, from_line))
        except JobwheelError as error:
            raise ExecutorUnreachableError(run.executor_address, error.message) from error
        nothing_new = page.to_line < page.from_line
        return LogPage(
            page.from_line, page.to_line, page.content, run.outcome is not None and (page.is_end or nothing_new)
        )

    def _find(self, connection: Connection, run_id: RunId) -> tuple[Run, str, str | None]:
        """The run, its group's app name, and its address if it is one of the group's: nothing else gets the token."""
        run = get_run(connection, run_id)
        if run is None:
            raise NotFoundError("run", run_id)
        group = get_group(connection, self._zone, run.group_id)
        if group is None or run.executor_address is None:
            return run, "", None
        known = set(group.addresses)
        if group.address_type is AddressType.REGISTERED:
            # An executor that missed its beats may answer still.
            known |= {each.address for each in list_registrations(connection, [group.app_name], 0)}
        wanted = run.executor_address.rstrip("/")
        return run, group.app_name, next((address for address in known if address.rstrip("/") == wanted), None)


def _was_accepted(run: Run) -> bool:
    return run.accepted_ms is not None or run.phase is Phase.ACCEPTED or run.trigger_code == SUCCESS


def _message_page(run: Run, from_line: int) -> LogPage:
    lines = (run.trigger_message or "").splitlines()
    first = max(1, from_line)
    content = "\n".join(lines[first - 1 :])
    to_line = max(first - 1, len(lines))
    return LogPage(first, to_line, f"{content}\n" if content else "", run.outcome is not None)
