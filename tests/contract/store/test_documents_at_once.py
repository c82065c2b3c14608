"""Documents of jobs applied by two nodes at once: whoever comes second waits, and is told of no deadlock."""

import asyncio
from typing import Any

import pytest

from jobwheel.admin.build import Admin
from jobwheel.admin.domain.job import Job, JobAddress
from jobwheel.admin.services.job_wishes import JobDocument, JobWish
from tests.support.rounds import rounds

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
