"""Groups without executors, and admins in trouble: told once, and told when it is over."""

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from sqlalchemy import delete

from jobwheel.admin.engine.figures import EngineFigures, HealthReason
from jobwheel.admin.services.admin_alarms import AdminAlarms
from jobwheel.admin.services.group_alarms import JUDGES_AFTER_S, GroupAlarms, GroupState
from jobwheel.admin.store import registry
from jobwheel.admin.store.alarm_states import read_states
from jobwheel.admin.store.tables import job_registry
from jobwheel.wire.messages import RegistryRequest
from tests.support.alarm_scene import AlarmScene
from tests.support.alarms import add_channel, event_kinds, refused
from tests.support.store import ADDRESS, ZONE

OTHER = "http://10.0.0.8:9999/"


async def beat(scene: AlarmScene, *addresses: str) -> None:
    for address in addresses:
        request = RegistryRequest(registry_group="EXECUTOR", registry_key="orders", registry_value=address)
        await scene.database.write(registry.beat, scene.store.zone, request, scene.database.now_ms())


async def looks(scene: AlarmScene, *nodes: GroupAlarms, seconds: float, beating: tuple[str, ...] = ()) -> None:
    """Time passes, and every node looks each five seconds."""
    for second in range(0, int(seconds), 5):
        if second % 30 == 0:
            await beat(scene, *beating)
        await scene.clock.advance(5)
        for node in nodes:
            await node.run_once()


async def titles(scene: AlarmScene) -> list[str]:
    await scene.distribute()
    await scene.send(scene.sender())
    return [each.removeprefix("[Jobwheel] ") for each in scene.recorded.titles]


async def test_an_executor_that_crashes_is_told_once_by_the_whole_cluster(scene: AlarmScene) -> None:
    await add_channel(scene.database)
    group_id = await scene.store.group()
    await scene.job(job_group=group_id)
    one, two = scene.groups(), scene.groups()
    await looks(scene, one, two, seconds=JUDGES_AFTER_S + 5, beating=(ADDRESS, OTHER))
    assert await titles(scene) == []
    await looks(scene, one, two, seconds=120, beating=(OTHER,))
    assert await titles(scene) == ["an executor of orders is gone"]
    await looks(scene, one, two, seconds=30, beating=(ADDRESS, OTHER))
    assert await titles(scene) == ["an executor of orders is gone", "an executor of orders is back"]
    assert await event_kinds(scene.database) == ["group.executor_gone", "group.executor_back"]


async def test_a_group_of_more_executors_than_a_state_holds_is_told_of_as_any_other(scene: AlarmScene) -> None:
    await add_channel(scene.database)
    await scene.job(job_group=await scene.store.group())
    many = tuple(f"http://{at:03}{'x' * 236}:9999/" for at in range(300))
    node = scene.groups()
    await looks(scene, node, seconds=JUDGES_AFTER_S + 5, beating=many)
    await looks(scene, node, seconds=120, beating=many[1:])
    assert await titles(scene) == ["an executor of orders is gone"]
    (state,) = (await scene.database.read(read_states, "group", GroupState)).values()
    assert len(msgspec.json.encode(state)) < 65_535
    assert (state.gone, len(state.live)) == (many[:1], 234)


async def test_a_group_that_has_nobody_left_is_offline_until_somebody_comes(scene: AlarmScene) -> None:
    await add_channel(scene.database)
    group_id = await scene.store.group()
    await scene.job(job_group=group_id)
    node = scene.groups()
    await looks(scene, node, seconds=JUDGES_AFTER_S + 5, beating=(ADDRESS,))
    # It leaves gracefully.
    await scene.database.write(lambda c: c.execute(delete(job_registry)))
    await looks(scene, node, seconds=60)
    await looks(scene, node, seconds=10, beating=(ADDRESS,))
    assert await titles(scene) == ["orders has no live executor", "orders has a live executor again"]
    assert await event_kinds(scene.database) == ["group.offline", "group.online"]


async def test_a_node_that_has_just_come_tells_of_nobody(scene: AlarmScene) -> None:
    """While no admin ran nobody could beat: all look gone."""
    await add_channel(scene.database)
    await scene.job(job_group=await scene.store.group())
    before = scene.groups()
    await looks(scene, before, seconds=JUDGES_AFTER_S + 5, beating=(ADDRESS, OTHER))
    await scene.clock.advance(3600)
    await looks(scene, scene.groups(), seconds=JUDGES_AFTER_S + 60, beating=(ADDRESS, OTHER))
    assert await titles(scene) == []


@dataclass
class Status:
    age_s: float | None = 0.0
    said: list[HealthReason] = field(default_factory=list)

    def reasons(self) -> list[HealthReason]:
        return self.said

    def collect(self) -> EngineFigures:
        return replace(EngineFigures(), last_pass_age_s=self.age_s)


def admins(scene: AlarmScene, status: Status) -> AdminAlarms:
    return AdminAlarms(scene.database, scene.clock, ZONE, status, scene.courier())


async def test_a_node_that_plans_nothing_is_told_and_told_again_when_it_does(scene: AlarmScene) -> None:
    await add_channel(scene.database, for_admins=True, is_default=False)
    await add_channel(scene.database, "others")
    status = Status(29.9)
    node = admins(scene, status)
    await node.run_once()
    assert await titles(scene) == []
    status.age_s = 30.0
    status.said = [HealthReason("no_scheduling_pass", "no scheduling pass for 30 s: the lock")]
    await node.run_once()
    await node.run_once()
    assert await titles(scene) == ["the admin plans nothing"]
    assert "the lock" in scene.recorded.alarms[0].text
    status.age_s, status.said = 0.5, []
    await node.run_once()
    await node.run_once()
    assert await titles(scene) == ["the admin plans nothing", "the admin works again"]


async def test_one_that_never_came_to_a_pass_is_told(scene: AlarmScene) -> None:
    await add_channel(scene.database, for_admins=True)
    node = admins(scene, Status(None))
    await node.run_once()
    await scene.clock.advance(31)
    await node.run_once()
    assert await titles(scene) == ["the admin plans nothing"]


async def test_a_wrong_clock_is_told(scene: AlarmScene) -> None:
    await add_channel(scene.database, for_admins=True)
    node = admins(scene, Status(said=[HealthReason("clock_off", "+7 s off"), HealthReason("other", "not told")]))
    await node.run_once()
    assert await titles(scene) == ["the clock of an admin is wrong"]


async def rename(scene: AlarmScene, before: str, after: str) -> None:
    await scene.database.write(lambda c: c.exec_driver_sql(f"ALTER TABLE {before} RENAME TO {after}"))


async def test_without_the_database_it_is_told_directly(scene: AlarmScene) -> None:
    await add_channel(scene.database, for_admins=True)
    status = Status()
    node = admins(scene, status)
    await node.run_once()
    await rename(scene, "jobwheel_alarm_outbox", "away")
    await rename(scene, "jobwheel_alarm_channel", "away_too")
    status.age_s = 31.0
    scene.recorded.failure = refused()
    await node.run_once()
    assert scene.recorded.tries == 1
    scene.recorded.failure = None
    await node.run_once()
    await node.run_once()
    assert scene.recorded.titles == ["[Jobwheel] the admin plans nothing"]
    assert scene.recorded.tries == 2


async def test_events_of_groups_that_are_gone_leave_nothing(scene: AlarmScene) -> None:
    group_id = await scene.store.group()
    node = scene.groups()
    await looks(scene, node, seconds=JUDGES_AFTER_S + 5, beating=(ADDRESS,))
    known: Any = await _states(scene)
    assert set(known) == {group_id}
    await scene.database.write(lambda c: c.exec_driver_sql("DELETE FROM xxl_job_group"))
    await looks(scene, node, seconds=5)
    assert await _states(scene) == {}


async def _states(scene: AlarmScene) -> Any:
    return await scene.database.read(read_states, "group", GroupState)
