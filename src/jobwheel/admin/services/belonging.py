"""Whether what a caller names is in one of his groups."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from jobwheel.admin.domain.caller import Caller, Right
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.domain.policies import GlueType
from jobwheel.admin.services.errors import ForbiddenError, NotFoundError
from jobwheel.admin.services.scripts import SCRIPT_FIELDS
from jobwheel.admin.store import Connection, belonging
from jobwheel.admin.store.database import Database

_FINDERS: Final[Mapping[str, Callable[[Connection, int], GroupId | None]]] = {
    "group": belonging.group_of_group,
    "job": belonging.group_of_job,
    "run": belonging.group_of_run,
}
_MOST_ID: Final = 2**31 - 1
_MOST_RUN_ID: Final = 2**63 - 1

KINDS: Final = tuple(_FINDERS)
"""What belongs to a group, by the words that messages have for it."""


class Belonging:
    """Asks the database for the group of what is stored, and for nothing where all groups are the caller's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def check(self, caller: Caller, kind: str, thing_id: int) -> None:
        """Let pass who may see a thing of one of the `KINDS`.

        Raises:
            NotFoundError: there is none of this id, or it is in a group that is not his: which, is not told.
        """
        if caller.sees_all:
            return
        # A larger number is no id: not every database can compare it with one.
        known = thing_id <= (_MOST_RUN_ID if kind == "run" else _MOST_ID)
        group_id = await self._database.read(_FINDERS[kind], thing_id) if known else None
        if group_id is None or not caller.sees(group_id):
            raise NotFoundError(kind, thing_id)


def check_right(caller: Caller, right: Right) -> None:
    """Let pass who may do so much in his groups.

    Raises:
        ForbiddenError: he may not.
    """
    if caller.right < right:
        needs = {Right.READ: "read", Right.WRITE: "change anything", Right.SCRIPTS: "change scripts"}[right]
        raise ForbiddenError(f"{caller.name} may not {needs}")


def check_job_fields(caller: Caller, given: Mapping[str, Any]) -> None:
    """Let pass who makes a job of these fields, or changes one to them, in a group of his.

    Raises:
        NotFoundError: the group is not his; the words are those for a group that is not there.
        ForbiddenError: he may not make scripts.
    """
    group_id = given.get("group_id")
    if group_id is not None and not caller.sees(group_id):
        raise NotFoundError("group", group_id)
    if given.get("glue_type", GlueType.BEAN) != GlueType.BEAN or given.keys() & SCRIPT_FIELDS:
        check_right(caller, Right.SCRIPTS)
