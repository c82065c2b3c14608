"""What must be there once, made twice at the same moment: one wins, the others are told who has it."""

import asyncio
from collections.abc import Awaitable, Sequence

import pytest

from jobwheel.admin.build import Admin
from jobwheel.admin.services.errors import TakenError
from jobwheel.admin.services.registry import Registry
from jobwheel.admin.store.groups import list_groups
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.messages import RegistryRequest
from tests.support.store import ZONE

pytestmark = pytest.mark.timeout(30)
AT_ONCE = 6


async def outcomes(calls: Sequence[Awaitable[object]], field: str) -> int:
    """How many won; each of the others was told that the field is taken."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    refusals = [each for each in answers if isinstance(each, BaseException)]
    assert all(isinstance(each, TakenError) and each.field == field for each in refusals), refusals
    return len(answers) - len(refusals)


async def app_names(admin: Admin) -> list[str]:
    return [each.app_name for each in await admin.database.read(list_groups, InstallationZone(ZONE), 0, 1000)]


def job_fields(group_id: int, key: str) -> dict[str, object]:
    fields = {"name": "settle", "handler": "settle", "schedule_type": "NONE", "schedule_conf": ""}
    return {"group_id": group_id, "key": key, **fields}


async def test_groups_of_one_app_name(admins: list[Admin]) -> None:
    for name in ("orders", "billing", "shipping"):
        given = {"app_name": name, "title": "Title"}
        calls = [admins[at % 2].services.groups.create(given, actor="test") for at in range(AT_ONCE)]
        assert await outcomes(calls, "app_name") == 1
    assert await app_names(admins[0]) == ["orders", "billing", "shipping"]


async def test_groups_that_are_given_one_app_name(admins: list[Admin]) -> None:
    groups = admins[0].services.groups
    made = [await groups.create({"app_name": f"app-{at}", "title": "T"}, actor="test") for at in range(AT_ONCE)]
    calls = [
        admins[at % 2].services.groups.update(each.group.id, {"app_name": "same"}, version=None, actor="test")
        for at, each in enumerate(made)
    ]
    assert await outcomes(calls, "app_name") == 1
    assert (await app_names(admins[0])).count("same") == 1


async def test_jobs_of_one_key(admins: list[Admin]) -> None:
    group = (await admins[0].services.groups.create({"app_name": "orders", "title": "T"}, actor="test")).group
    for key in ("nightly", "hourly", "weekly"):
        given = job_fields(group.id, key)
        calls = [admins[at % 2].services.jobs.create(given, running=False, actor="test") for at in range(AT_ONCE)]
        assert await outcomes(calls, "key") == 1


async def test_jobs_that_are_given_one_key(admins: list[Admin]) -> None:
    group = (await admins[0].services.groups.create({"app_name": "orders", "title": "T"}, actor="test")).group
    jobs = admins[0].services.jobs
    made = [await jobs.create(job_fields(group.id, f"k{at}"), running=False, actor="test") for at in range(AT_ONCE)]
    calls = [
        admins[at % 2].services.jobs.update(each.id, {"key": "same"}, version=None, actor="test")
        for at, each in enumerate(made)
    ]
    assert await outcomes(calls, "key") == 1


async def test_executors_of_one_new_app_name(admins: list[Admin]) -> None:
    def registry(admin: Admin) -> Registry:
        return Registry(
            admin.database, SystemClock(), admin.installation.zone, admin.engine.addresses, auto_create_groups=True
        )

    for name in ("orders", "billing", "shipping"):
        requests = [
            RegistryRequest(registry_group="EXECUTOR", registry_key=name, registry_value=f"http://10.0.0.{at}:9999/")
            for at in range(AT_ONCE)
        ]
        await asyncio.gather(*(registry(admins[at % 2]).register(each) for at, each in enumerate(requests)))
    assert await app_names(admins[0]) == ["orders", "billing", "shipping"]
