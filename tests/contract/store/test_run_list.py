from dataclasses import replace
from typing import Any

import pytest

from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.run import Outcome, Phase, TriggerType
from jobwheel.admin.store.run_causes import last_planned
from jobwheel.admin.store.run_list import RunFilter, delete_runs_of_job, get_run, list_runs
from tests.support.store import ADDRESS, NOW_MS, Store


async def fill(store: Store) -> dict[str, RunId]:
    """Runs that differ from each other in one thing each."""
    node = await store.node()
    plain = (await store.pending(node))[0].id
    other_job = (await store.pending(node, job_id=2))[0].id
    other_group = (await store.pending(node, group_id=2))[0].id
    manual = (await store.pending(node, trigger_type=TriggerType.MANUAL))[0].id
    later = (await store.pending(node, NOW_MS + 1000))[0].id
    sent = await store.sending(node)
    failed = (await store.pending(node))[0].id
    await store.change_run(failed, phase=None, outcome="failed", trigger_code=500)
    won = (await store.pending(node))[0].id
    await store.change_run(won, phase=None, outcome="succeeded", trigger_code=200, handle_code=200)
    return {
        "plain": plain,
        "other_job": other_job,
        "other_group": other_group,
        "manual": manual,
        "later": later,
        "sent": sent,
        "failed": failed,
        "won": won,
    }


async def names(store: Store, made: dict[str, RunId], wanted: RunFilter) -> list[str]:
    by_id = {run_id: name for name, run_id in made.items()}
    return [by_id[run.id] for run in await store.database.read(list_runs, wanted, None, 100)]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"job_id": JobId(2)}, ["other_job"]),
        ({"group_id": GroupId(2)}, ["other_group"]),
        ({"trigger_type": TriggerType.MANUAL}, ["manual"]),
        ({"planned_from_ms": NOW_MS + 1000}, ["later"]),
        ({"planned_from_ms": NOW_MS + 1, "planned_until_ms": NOW_MS + 1000}, []),
        ({"planned_until_ms": NOW_MS}, []),
        ({"executor_address": ADDRESS}, ["sent"]),
        ({"phase": Phase.SENDING}, ["sent"]),
        ({"outcome": Outcome.FAILED}, ["failed"]),
        ({"outcome": Outcome.SUCCEEDED}, ["won"]),
        ({"outcome": Outcome.LOST}, []),
        ({"phase": Phase.PENDING, "job_id": JobId(1), "group_id": GroupId(1)}, ["later", "manual", "plain"]),
    ],
)
async def test_each_filter_finds_its_runs_newest_first(store: Store, wanted: dict[str, Any], found: list[str]) -> None:
    assert await names(store, await fill(store), RunFilter(**wanted)) == found


async def test_pages_follow_each_other_without_a_gap(store: Store) -> None:
    await fill(store)
    read: list[RunId] = []
    while True:
        page = await store.database.read(list_runs, RunFilter(), read[-1] if read else None, 3)
        if not page:
            break
        read += [run.id for run in page]
    assert len(read) == 8
    assert read == sorted(read, reverse=True)


async def test_a_row_of_a_java_admin_is_shown_with_what_it_has(store: Store) -> None:
    run_id = await store.sending(await store.node())
    await store.change_run(
        run_id, phase=None, trigger_type=None, planned_ms=None, due_ms=None, triggered_ms=None, owner=None
    )
    run = await store.database.read(get_run, run_id)
    assert run is not None
    assert (run.phase, run.outcome, run.trigger_type, run.planned_ms) == (None, None, None, None)


async def test_what_nobody_knows_hides_no_run(store: Store) -> None:
    run_id = await store.sending(await store.node())
    await store.change_run(run_id, phase="dancing", trigger_type="WHIM", outcome="odd")
    run = await store.database.read(get_run, run_id)
    assert run is not None
    assert (run.phase, run.outcome, run.trigger_type) == (None, None, None)
    assert await store.database.read(get_run, RunId(4711)) is None


async def test_the_last_planned_time_is_the_schedules(store: Store) -> None:
    node = await store.node()
    assert await store.database.read(last_planned, JobId(5)) is None
    await store.pending(node, NOW_MS + 1000, job_id=5)
    await store.pending(node, NOW_MS + 9000, job_id=5, trigger_type=TriggerType.MANUAL)
    await store.pending(node, NOW_MS + 5000, job_id=6)
    assert await store.database.read(last_planned, JobId(5)) == NOW_MS + 1000


async def test_a_deleted_jobs_rows_go_in_slices(store: Store) -> None:
    node = await store.node()
    await store.pending(node, *range(NOW_MS, NOW_MS + 5), job_id=5)
    kept = (await store.pending(node, job_id=6))[0].id
    assert [await store.database.write(delete_runs_of_job, JobId(5), 2) for _ in range(4)] == [2, 2, 1, 0]
    assert await store.run_row(kept)


async def test_pages_within_bounds_of_the_planned_time_follow_that_time(store: Store) -> None:
    node = await store.node()
    # What was planned late for an early time (a retry, a misfire) has a high id.
    planned = [NOW_MS + 5, NOW_MS + 9, NOW_MS + 1, NOW_MS + 9, NOW_MS + 7, NOW_MS + 20]
    ids = [run.id for run in await store.pending(node, *planned)]
    wanted = RunFilter(planned_from_ms=NOW_MS, planned_until_ms=NOW_MS + 20)
    read: list[RunId] = []
    while True:
        page = await store.database.read(list_runs, wanted, read[-1] if read else None, 2)
        if not page:
            break
        read += [run.id for run in page]
    assert [planned[ids.index(run_id)] - NOW_MS for run_id in read] == [9, 9, 7, 5, 1]
    assert read[:2] == [ids[3], ids[1]]


async def test_a_page_goes_on_after_a_run_that_was_cleaned_up(store: Store) -> None:
    node = await store.node()
    ids = [run.id for run in await store.pending(node, NOW_MS + 1, NOW_MS + 2, NOW_MS + 3, job_id=5)]
    gone = (await store.pending(node, NOW_MS + 4, job_id=6))[0].id
    await store.database.write(delete_runs_of_job, JobId(6), 10)
    wanted = RunFilter(planned_from_ms=NOW_MS)
    assert [run.id for run in await store.database.read(list_runs, wanted, gone, 10)] == ids[::-1]


async def _pages(store: Store, wanted: RunFilter, limit: int) -> list[RunId]:
    read: list[RunId] = []
    while page := await store.database.read(list_runs, wanted, read[-1] if read else None, limit):
        read += [run.id for run in page]
    return read


async def _runs_of_many_groups(store: Store) -> list[tuple[int, int, RunId]]:
    """Group, planned time and id of each: 70 groups take turns, and what comes later was planned for earlier."""
    node = await store.node()
    made = []
    for n in range(140):
        planned_ms = NOW_MS - n // 3
        run = (await store.pending(node, planned_ms, job_id=n % 5, group_id=1 + n % 70))[0]
        made.append((1 + n % 70, planned_ms, run.id))
    return made


_SOME = frozenset(GroupId(n) for n in (1, 3, 4, 70, 99))
_MOST = frozenset(GroupId(n) for n in range(2, 70))


@pytest.mark.parametrize("groups", [_SOME, _MOST])
async def test_the_runs_of_some_groups_come_in_the_same_order_as_all(store: Store, groups: frozenset[GroupId]) -> None:
    theirs = [made for made in await _runs_of_many_groups(store) if made[0] in groups]
    assert await _pages(store, RunFilter(group_ids=groups), 7) == [made[2] for made in reversed(theirs)]
    within = RunFilter(group_ids=groups, planned_from_ms=NOW_MS - 30, planned_until_ms=NOW_MS - 5)
    planned = sorted((made for made in theirs if -30 <= made[1] - NOW_MS < -5), key=lambda made: made[1:], reverse=True)
    assert await _pages(store, within, 7) == [made[2] for made in planned]


@pytest.mark.parametrize(
    "wanted",
    [
        RunFilter(phase=Phase.PENDING),
        RunFilter(trigger_type=TriggerType.CRON),
        RunFilter(job_id=JobId(2)),
        RunFilter(outcome=Outcome.SUCCEEDED),
        RunFilter(outcome=Outcome.FAILED, planned_from_ms=NOW_MS - 30),
        RunFilter(executor_address=ADDRESS, planned_from_ms=NOW_MS - 30),
        RunFilter(trigger_type=TriggerType.MANUAL),
    ],
)
async def test_the_runs_of_some_groups_are_those_of_all_without_the_others(store: Store, wanted: RunFilter) -> None:
    for n, (_, _, run_id) in enumerate(await _runs_of_many_groups(store)):
        if n % 2:
            outcome = "succeeded" if n % 4 == 1 else "failed"
            cause = "MANUAL" if n % 8 == 1 else "CRON"
            changed = {"phase": None, "outcome": outcome, "executor_address": ADDRESS, "trigger_type": cause}
            await store.change_run(run_id, **changed)
    everything = await store.database.read(list_runs, wanted, None, 200)
    seen = [run.id for run in everything if run.group_id in _SOME]
    assert seen
    assert await _pages(store, replace(wanted, group_ids=_SOME), 3) == seen


async def test_by_a_job_of_a_group_that_is_hidden_nothing_is_listed(store: Store) -> None:
    node = await store.node()
    job_id = await store.job(job_group=2)
    (run,) = await store.pending(node, job_id=job_id, group_id=1)
    (gone,) = await store.pending(node, job_id=4711, group_id=1)
    for groups, found in ((frozenset({GroupId(1)}), []), (frozenset({GroupId(1), GroupId(2)}), [run.id])):
        assert await _pages(store, RunFilter(job_id=job_id, group_ids=groups), 5) == found
        assert await _pages(store, RunFilter(job_id=JobId(4711), group_ids=groups), 5) == [gone.id]
