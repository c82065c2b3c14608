"""Documents of jobs applied by two nodes at once: whoever comes second waits, and is told of no deadlock."""

import asyncio
from typing import Any

import pytest
from sqlalchemy.util import await_only

from jobwheel.admin.build import Admin
from jobwheel.admin.domain.job import Job, JobAddress
from jobwheel.admin.services.job_wishes import JobDocument, JobWish
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from tests.contract.store.test_several_nodes import WAITERS
from tests.support.live_admin import seen
from tests.support.rounds import rounds
from tests.support.servers import SERVER_KINDS

pytestmark = pytest.mark.timeout(60)
ROUNDS = rounds(3)
GROUPS = ({"app_name": "left", "title": "Left"}, {"app_name": "right", "title": "Right"})


def wish(app_name: str, key: str, *children: str, **fields: Any) -> JobWish:
    """A job of a group; its children are named as `group/key`."""
    given = {"name": key, "handler": "settle", "schedule_type": "NONE", "schedule_conf": "", **fields}
    kin = tuple(JobAddress(*child.split("/")) for child in children)
    return JobWish(JobAddress(app_name, key), given, kin)


async def apply_at_once(admins: list[Admin], *documents: JobDocument) -> None:
    async with asyncio.timeout(30):
        await asyncio.gather(
            *(
                admins[at % 2].services.job_documents.apply(document, fingerprint=None, actor="test")
                for at, document in enumerate(documents)
            )
        )


async def child_keys(admin: Admin, app_name: str, key: str) -> list[str | None]:
    """The keys of a job's children."""
    job = await admin.services.job_documents.find(JobAddress(app_name, key))
    children: list[Job] = [await admin.services.jobs.get(child) for child in job.settings.child_job_ids]
    return [child.settings.key for child in children]


async def test_children_that_cross(admins: list[Admin]) -> None:
    """The jobs of each are the children of the other's, and both change all of theirs."""
    keys = [f"job {number}" for number in range(6)]
    plain = [wish(side, key) for side in ("left", "right") for key in keys]
    await apply_at_once(admins, JobDocument(GROUPS, plain))
    for number in range(ROUNDS):
        # The upper half of each side has children among the lower half of the other: no circle.
        chosen = [keys[(number + at) % 3] for at in range(3)]
        documents = [
            JobDocument(
                (),
                [
                    *(wish(side, key, parameter=str(number)) for key in keys[:3]),
                    *(
                        wish(side, key, *(f"{other}/{child}" for child in chosen), parameter=str(number))
                        for key in reversed(keys[3:])
                    ),
                ],
            )
            for side, other in (("left", "right"), ("right", "left"))
        ]
        await apply_at_once(admins, *documents, *documents[::-1])
        for side in ("left", "right"):
            assert [await child_keys(admins[0], side, key) for key in keys[3:]] == [chosen] * 3


@pytest.mark.parametrize("children", [(), ("left/a 0",)])
async def test_the_same_new_jobs(admins: list[Admin], children: tuple[str, ...]) -> None:
    """In another order, too: who finds a job that another has made meanwhile changes it."""
    await apply_at_once(admins, *[JobDocument(GROUPS, [wish("left", "a 0")])] * 4)
    for number in range(1, ROUNDS + 1):
        jobs = [wish("left", f"{letter} {number}", *children) for letter in "abcdef"]
        await apply_at_once(admins, JobDocument((), jobs), JobDocument((), jobs[::-1]), JobDocument((), jobs))
        for job in jobs:
            assert await child_keys(admins[1], "left", job.address.key) == [child.split("/")[1] for child in children]


async def somebody_waits(database: Database) -> None:
    """Return once a transaction waits for a row that another one holds."""

    async def look() -> bool:
        return bool(await database.read(lambda c: c.exec_driver_sql(WAITERS[c.dialect.name]).scalar()))

    await seen(look)


@pytest.mark.parametrize("database_url", SERVER_KINDS, indirect=True)
@pytest.mark.parametrize("wished", [("other",), ("moved", "other")], ids=["missing", "wished"])
async def test_a_job_that_moves_away_meanwhile_is_left_alone(admins: list[Admin], wished: tuple[str, ...]) -> None:
    """It was found in the group, and is in another one by the time that its row is free."""
    await apply_at_once(admins, JobDocument(GROUPS, [wish("left", "moved"), wish("left", "other")]))
    one, other = admins
    moved = await one.services.job_documents.find(JobAddress("left", "moved"))
    (right,) = [each.group.id for each in await one.services.groups.page(0, 10) if each.group.app_name == "right"]
    document = JobDocument((), [wish("left", key, parameter="new") for key in wished], delete_missing=True)

    def move(connection: Connection) -> asyncio.Task[Any]:
        one.services.jobs.update_in(connection, moved.id, {"group_id": right}, None, "test")
        applying = asyncio.ensure_future(
            other.services.job_documents.apply(document, fingerprint=None, actor="test"),
        )
        await_only(somebody_waits(one.database))
        return applying

    await (await one.database.write(move))
    after = await one.services.job_documents.find(JobAddress("right", "moved"))
    assert (after.id, after.settings.parameter) == (moved.id, "")
    found = await one.services.job_documents.find(JobAddress("left", "other"))
    assert found.settings.parameter == "new"
    if "moved" in wished:
        made = await one.services.job_documents.find(JobAddress("left", "moved"))
        assert made.id != moved.id
