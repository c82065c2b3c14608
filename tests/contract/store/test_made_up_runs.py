"""Backfills and repetitions on each kind of database."""

import pytest

from jobwheel.admin.domain.event import EventKind
from jobwheel.admin.domain.ids import JobId, RunId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import Outcome, Phase, Run, TriggerType
from jobwheel.admin.services.backfills import Backfill, Backfills, BackfillWish
from jobwheel.admin.services.errors import InvalidFieldError, NotFoundError, OpenRunsError
from jobwheel.admin.services.reruns import Reruns
from jobwheel.admin.store.events import list_job_events
from jobwheel.admin.store.jobs import JobFilter, list_jobs
from jobwheel.admin.store.run_list import RunFilter, list_runs
from tests.support.admin_harness import FakeScheduler
from tests.support.store import NOW_MS, Store

pytestmark = pytest.mark.timeout(30)
NOON_MS = NOW_MS - NOW_MS % 3_600_000 - 24 * 3_600_000
HOUR_MS = 3_600_000


async def runs_of(store: Store, job_id: JobId, limit: int = 1000) -> list[Run]:
    """Oldest first."""
    return (await store.database.read(list_runs, RunFilter(job_id=job_id), None, limit))[::-1]


async def done(store: Store, job_id: JobId, outcome: Outcome, planned_ms: int, **columns: object) -> RunId:
    (run,) = await store.pending(None, planned_ms, job_id=job_id, parameter=f"p={planned_ms}")
    await store.change_run(run.id, phase=None, outcome=outcome.value, **columns)
    return run.id


class TestBackfill:
    def backfills(self, store: Store) -> tuple[Backfills, FakeScheduler]:
        scheduler = FakeScheduler()
        return Backfills(store.database, store.clock, store.zone, scheduler), scheduler

    async def test_a_run_for_each_planned_time_at_the_rate_that_is_wanted(self, store: Store) -> None:
        job_id = await store.job(job_group=await store.group(), schedule_conf="0 0 * * * ?")
        backfills, scheduler = self.backfills(store)
        wish = BackfillWish(NOON_MS, NOON_MS + 5 * HOUR_MS, interval_s=2.5, parameter="again")
        told = await backfills.make(job_id, wish, actor="li")
        assert told == Backfill(5, 0, NOON_MS, NOON_MS + 4 * HOUR_MS, NOW_MS + 10_000)
        runs = await runs_of(store, job_id)
        assert [run.planned_ms for run in runs] == [NOON_MS + at * HOUR_MS for at in range(5)]
        assert [run.due_ms for run in runs] == [NOW_MS + at * 2500 for at in range(5)]
        assert {(run.trigger_type, run.phase, run.parameter) for run in runs} == {
            (TriggerType.BACKFILL, Phase.PENDING, "again")
        }
        assert {run.triggered_ms for run in runs} == {NOW_MS - NOW_MS % 1000}
        assert [run.id for run in scheduler.flown] == [run.id for run in runs[:3]]
        (event,) = await store.database.read(list_job_events, job_id, None, 10)
        assert (event.kind, event.actor, event.details["count"]) == (EventKind.JOB_BACKFILLED, "li", 5)

    async def test_ten_thousand_at_once_and_no_more(self, store: Store) -> None:
        job_id = await store.job(job_group=await store.group())
        backfills, scheduler = self.backfills(store)
        wish = BackfillWish(NOON_MS, NOON_MS + 10_001_000, interval_s=0.001)
        with pytest.raises(InvalidFieldError, match="more than 10000 planned times"):
            await backfills.make(job_id, wish, actor="li")
        assert await runs_of(store, job_id) == []
        most = BackfillWish(NOON_MS, NOON_MS + 10_000_000, interval_s=0.001)
        assert (await backfills.make(job_id, most, actor="li")).count == 10_000
        assert len(await runs_of(store, job_id, 10_001)) == 10_000
        assert len(scheduler.flown) == 5001

    async def test_only_what_has_no_run_yet_and_what_was_not_sent_can_be_taken_back(self, store: Store) -> None:
        job_id = await store.job(job_group=await store.group(), schedule_conf="0 0 * * * ?")
        other = await store.job(job_group=1)
        await done(store, job_id, Outcome.FAILED, NOON_MS + HOUR_MS)
        await done(store, other, Outcome.FAILED, NOON_MS)
        backfills, _ = self.backfills(store)
        wish = BackfillWish(NOON_MS, NOON_MS + 3 * HOUR_MS, only_missing=True)
        told = await backfills.make(job_id, wish, actor="li")
        assert (told.count, told.skipped) == (2, 1)
        first, *_ = [run for run in await runs_of(store, job_id) if run.phase is Phase.PENDING]
        await store.change_run(first.id, phase="accepted")
        await store.pending(None, job_id=job_id)
        assert await backfills.cancel(job_id, actor="li") == 1
        left = [(run.trigger_type, run.phase) for run in await runs_of(store, job_id)]
        assert left == [
            (TriggerType.CRON, None),
            (TriggerType.BACKFILL, Phase.ACCEPTED),
            (TriggerType.CRON, Phase.PENDING),
        ]
        assert await backfills.cancel(job_id, actor="li") == 0


class TestRerun:
    def reruns(self, store: Store) -> tuple[Reruns, FakeScheduler]:
        scheduler = FakeScheduler()
        return Reruns(store.database, store.clock, store.zone, scheduler), scheduler

    async def test_as_it_was_meant(self, store: Store) -> None:
        job_id = await store.job(job_group=await store.group(), executor_param="new")
        old = await done(store, job_id, Outcome.FAILED, NOON_MS)
        reruns, scheduler = self.reruns(store)
        (told,) = await reruns.rerun([old], actor="li", dry_run=True)
        assert (told.repeats, told.run_id, scheduler.flown) == (old, None, [])
        (made,) = await reruns.rerun([old], actor="li")
        run = (await runs_of(store, job_id))[-1]
        assert (made.repeats, made.run_id, made.planned_ms) == (old, run.id, NOON_MS)
        assert (run.trigger_type, run.planned_ms, run.due_ms) == (TriggerType.MANUAL, NOON_MS, NOW_MS)
        assert (run.parameter, run.attempt, run.phase) == (f"p={NOON_MS}", 1, Phase.PENDING)
        assert [each.id for each in scheduler.flown] == [run.id]
        (event,) = await store.database.read(list_job_events, job_id, None, 10)
        assert (event.run_id, event.details["repeats"]) == (run.id, old)

    async def test_one_for_each_planned_time_that_has_not_succeeded_in_the_end(self, store: Store) -> None:
        job_id = await store.job(job_group=await store.group())
        times = [NOON_MS + at * HOUR_MS for at in range(4)]
        first = [await done(store, job_id, Outcome.FAILED, each) for each in times]
        # Tried again: in vain, with success, and two shards of a broadcast.
        last = await done(store, job_id, Outcome.TIMED_OUT, times[0], attempt=2, first_run_id=first[0])
        await store.change_run(last, outcome=Outcome.FAILED.value)
        await done(store, job_id, Outcome.SUCCEEDED, times[1], attempt=2, first_run_id=first[1])
        await store.change_run(first[2], broadcast_id=first[2])
        shard = await done(store, job_id, Outcome.FAILED, times[2], broadcast_id=first[2])
        reruns, _ = self.reruns(store)
        wanted = RunFilter(job_id=job_id, outcome=Outcome.FAILED, planned_until_ms=times[3])
        told = await reruns.rerun(wanted, actor="li", dry_run=True)
        assert sorted(each.repeats for each in told) == [last, shard]
        # By its id it is repeated whatever came after it.
        assert [each.repeats for each in await reruns.rerun([first[1]], actor="li")] == [first[1]]

    async def test_what_is_open_is_refused_by_name(self, store: Store) -> None:
        job_id = await store.job(job_group=await store.group())
        failed = await done(store, job_id, Outcome.FAILED, NOON_MS)
        (retry,) = await store.pending(None, NOON_MS, job_id=job_id)
        await store.change_run(retry.id, attempt=2, first_run_id=failed)
        (other,) = await store.pending(None, NOON_MS, job_id=job_id)
        reruns, scheduler = self.reruns(store)
        with pytest.raises(OpenRunsError, match=f"still open: {other.id};"):
            await reruns.rerun([other.id], actor="li")
        with pytest.raises(OpenRunsError, match=f"still open: {retry.id};"):
            await reruns.rerun(RunFilter(outcome=Outcome.FAILED), actor="li")
        assert (len(await runs_of(store, job_id)), scheduler.flown) == (3, [])

    async def test_what_is_gone_is_named(self, store: Store) -> None:
        reruns, _ = self.reruns(store)
        with pytest.raises(NotFoundError, match="there is no run 777"):
            await reruns.rerun([RunId(777)], actor="li")
        orphan = await done(store, JobId(999), Outcome.FAILED, NOON_MS)
        with pytest.raises(NotFoundError, match=f"no job 999 any more, which the run {orphan} was of"):
            await reruns.rerun([orphan], actor="li")

    async def test_a_fixed_delay_waits_for_it(self, store: Store) -> None:
        job_id = await store.job(job_group=await store.group(), schedule_type="FIX_DELAY", schedule_conf="60")
        old = await done(store, job_id, Outcome.FAILED, NOON_MS)
        await self.reruns(store)[0].rerun([old], actor="li")
        assert (await store.job_row(job_id))["trigger_next_time"] == AWAITING_SETTLEMENT_MS

    async def test_too_many(self, store: Store) -> None:
        job_id = await store.job(job_group=await store.group())
        await store.pending(None, *range(NOON_MS, NOON_MS + 1001), job_id=job_id)
        with pytest.raises(InvalidFieldError, match="more than 1000 runs"):
            await self.reruns(store)[0].rerun(RunFilter(job_id=job_id), actor="li")


async def test_jobs_of_a_tag(store: Store) -> None:
    tags = {"a": "night,x", "b": "Night_1", "c": "midnight", "d": None, "e": "账"}
    for name, text in tags.items():
        await store.job(job_desc=name, tags=text)

    async def names(tag: str) -> list[str]:
        jobs = await store.database.read(list_jobs, store.zone, JobFilter(tag=tag), 0, 10)
        return [job.settings.name for job in jobs]

    assert await names("night") == ["a"]
    assert await names("NIGHT_1") == ["b"]
    assert await names("账") == ["e"]
    assert await names("%") == []
