"""The outbox of alarms: nothing lost, nothing sent twice but by a death, equal ones merged."""

from typing import Any

import pytest

from jobwheel.admin.domain.alarm import MERGED_FOR_MS, TRIED_FOR_MS, AlarmKind
from jobwheel.admin.domain.ids import ChannelId, NodeId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.store import alarm_outbox, alarm_sending
from jobwheel.admin.store.alarm_channels import delete_channel
from jobwheel.admin.store.alarm_sending import FAILED, SENT, TakenAlarm
from jobwheel.admin.store.tables import alarm_outbox as outbox_table
from tests.support.alarms import add_channel, ended, event_kinds, facts, outbox
from tests.support.store import NOW_MS, Store

NODE, OTHER = NodeId(7), NodeId(8)
LEASE_MS = 60_000
KEY = "job 1 failed"


@pytest.fixture
async def channel(store: Store) -> ChannelId:
    return await add_channel(store.database)


async def give(store: Store, channel: ChannelId, at_ms: int = NOW_MS, key: str = KEY, **fields: Any) -> None:
    await store.database.write(alarm_outbox.give, channel, f"{channel} {key}", facts(at_ms, **fields), at_ms)


async def take(store: Store, channel: ChannelId, now_ms: int, node: NodeId = NODE) -> alarm_sending.Take:
    return await store.database.write(alarm_sending.take, channel, node, now_ms, now_ms + LEASE_MS)


async def taken(store: Store, channel: ChannelId, now_ms: int, node: NodeId = NODE) -> TakenAlarm:
    alarm = (await take(store, channel, now_ms, node)).alarm
    assert alarm is not None
    return alarm


async def test_runs_that_did_not_succeed_are_noted_and_taken_out_once(store: Store) -> None:
    assert not await store.database.read(alarm_outbox.has_ungiven)
    runs = [ended(5, 1, at_ms=NOW_MS, attempt=2, is_final=False), ended(6, 1, Outcome.SUCCEEDED, at_ms=NOW_MS)]
    await store.database.write(alarm_outbox.note_ended, [*runs, ended(7, 2, Outcome.LOST, at_ms=NOW_MS)])
    assert await store.database.read(alarm_outbox.has_ungiven)
    first, count = await store.database.write(alarm_outbox.take_ungiven, 1)
    assert (count, len(first)) == (1, 1)
    rest, _ = await store.database.write(alarm_outbox.take_ungiven, 10)
    notices = [each.notice for each in (*first, *rest)]
    assert sorted((each.kind, each.run_id, each.attempt, each.is_final) for each in notices) == [
        (AlarmKind.FAILED, 5, 2, False),
        (AlarmKind.LOST, 7, 1, True),
    ]
    assert not await store.database.read(alarm_outbox.has_ungiven)


async def test_a_thousand_are_noted_at_once(store: Store) -> None:
    await store.database.write(alarm_outbox.note_ended, [ended(each, 1, at_ms=NOW_MS) for each in range(1, 1001)])
    assert await store.database.read(alarm_outbox.count_waiting) == 1000


async def test_what_nobody_can_read_is_taken_out(store: Store) -> None:
    row = {"channel_id": 0, "kind": "?", "merge_key": "", "message": "{", "created_ms": 1, "due_ms": 1}
    await store.database.write(lambda c: c.execute(outbox_table.insert().values(row)))
    assert await store.database.write(alarm_outbox.take_ungiven, 10) == ([], 1)
    assert not await store.database.read(alarm_outbox.has_ungiven)


async def test_the_first_goes_at_once_and_what_follows_at_the_end_of_the_time(store: Store, channel: ChannelId) -> None:
    await give(store, channel, NOW_MS, run_id=1, run_ids=(1,))
    first = await taken(store, channel, NOW_MS)
    assert await store.database.write(alarm_sending.settle_sent, NODE, first)
    for number in range(2, 6):
        await give(store, channel, NOW_MS + number, run_id=number, run_ids=(number,))
    assert await store.database.read(alarm_sending.due_channels, NOW_MS + MERGED_FOR_MS - 1) == []
    end_ms = NOW_MS + MERGED_FOR_MS
    assert await store.database.read(alarm_sending.due_channels, end_ms) == [channel]
    rest = await taken(store, channel, end_ms)
    assert (first.facts.count, rest.facts.count, rest.facts.run_ids) == (1, 4, (2, 3, 4, 5))
    assert (rest.facts.first_ms, rest.facts.last_ms, rest.facts.run_id) == (NOW_MS + 2, NOW_MS + 5, 5)
    await store.database.write(alarm_sending.settle_sent, NODE, rest)
    # The message at the end began a time of its own.
    await give(store, channel, end_ms + 1)
    assert [row["due_ms"] for row in await outbox(store.database)] == [end_ms + MERGED_FOR_MS]


async def test_after_a_quiet_time_the_next_goes_at_once(store: Store, channel: ChannelId) -> None:
    await give(store, channel)
    await store.database.write(alarm_sending.settle_sent, NODE, await taken(store, channel, NOW_MS))
    later_ms = NOW_MS + MERGED_FOR_MS
    await give(store, channel, later_ms)
    assert (await taken(store, channel, later_ms)).facts.count == 1


async def test_others_are_not_merged(store: Store, channel: ChannelId) -> None:
    other = await add_channel(store.database, "others")
    await give(store, channel)
    await give(store, channel, key="job 2 failed")
    await give(store, other)
    assert [(row["channel_id"], row["merged"]) for row in await outbox(store.database)] == [
        (channel, 1),
        (channel, 1),
        (other, 1),
    ]


async def test_one_that_is_being_sent_is_taken_by_nobody_until_its_lease_ends(store: Store, channel: ChannelId) -> None:
    await give(store, channel)
    first = await taken(store, channel, NOW_MS)
    assert (await take(store, channel, NOW_MS + LEASE_MS - 1, OTHER)).alarm is None
    again = await taken(store, channel, NOW_MS + LEASE_MS, OTHER)
    assert (again.id, again.attempt) == (first.id, 2)
    # The first node was only slow: what it says of its own attempt changes nothing of the other's.
    assert not await store.database.write(alarm_sending.settle_sent, NODE, first)
    assert len(await outbox(store.database)) == 1
    assert await store.database.write(alarm_sending.settle_sent, OTHER, again)
    assert await outbox(store.database) == []


async def test_the_only_node_need_not_wait_for_the_lease_of_a_dead_one(store: Store, channel: ChannelId) -> None:
    await give(store, channel)
    first = await taken(store, channel, NOW_MS)
    await give(store, channel, NOW_MS + 1)
    assert await store.database.write(alarm_sending.free_all, NOW_MS + 2) == 1
    again = await taken(store, channel, NOW_MS + 2, OTHER)
    assert (again.id, again.attempt, again.facts.count) == (first.id, 2, 2)


async def test_what_follows_while_it_cannot_be_sent_joins_it(store: Store, channel: ChannelId) -> None:
    await give(store, channel)
    first = await taken(store, channel, NOW_MS)
    # While it is being sent it cannot be changed: the next one waits beside it.
    await give(store, channel, NOW_MS + 1)
    again_ms = NOW_MS + 30_000
    assert not await store.database.write(alarm_sending.settle_failed, NODE, first, again_ms, NOW_MS + 20_000, "no")
    await give(store, channel, NOW_MS + 21_000)
    assert len(await outbox(store.database)) == 2
    assert (await taken(store, channel, again_ms)).facts.count == 3
    assert len(await outbox(store.database)) == 1


async def test_after_an_hour_it_is_given_up_with_an_event_and_a_mark_in_its_run(
    store: Store, channel: ChannelId
) -> None:
    run_id = (await store.pending(None))[0].id
    await store.change_run(run_id, phase=None, alarm_status=1)
    await give(store, channel, run_id=run_id, run_ids=(run_id,))
    alarm = await taken(store, channel, NOW_MS)
    too_late_ms = NOW_MS + TRIED_FOR_MS + 1
    assert await store.database.write(alarm_sending.settle_failed, NODE, alarm, too_late_ms, too_late_ms - 1, "refused")
    assert await outbox(store.database) == []
    assert await event_kinds(store.database) == ["alarm.given_up"]
    assert (await store.run_row(run_id))["alarm_status"] == FAILED


async def test_a_sent_one_is_marked_in_its_runs_whatever_other_channels_do(store: Store, channel: ChannelId) -> None:
    runs = [each.id for each in await store.pending(None, NOW_MS, NOW_MS)]
    for run_id in runs:
        await store.change_run(run_id, phase=None, alarm_status=1)
    await give(store, channel, run_ids=tuple(runs))
    await store.database.write(alarm_sending.settle_sent, NODE, await taken(store, channel, NOW_MS))
    other = await add_channel(store.database, "others")
    await give(store, other, run_ids=tuple(runs))
    alarm, late_ms = await taken(store, other, NOW_MS), NOW_MS + 2 * TRIED_FOR_MS
    await store.database.write(alarm_sending.settle_failed, NODE, alarm, late_ms, late_ms, "no")
    assert [(await store.run_row(run_id))["alarm_status"] for run_id in runs] == [SENT, SENT]


async def test_what_nobody_tried_for_an_hour_becomes_one_message(store: Store, channel: ChannelId) -> None:
    """A flood of old alarms after an outage, or after months in which no admin ran."""
    for job in range(1, 41):
        await give(store, channel, NOW_MS, f"job {job} failed", job=f"job-{job}", job_id=job)
    back_ms = NOW_MS + 90 * 24 * 3600 * 1000
    looked = await take(store, channel, back_ms)
    assert (looked.alarm, looked.outdated, looked.given_up) == (None, 40, 0)
    told = await taken(store, channel, back_ms)
    assert (told.facts.kind, told.facts.count) == (AlarmKind.OUTDATED, 40)
    assert "job-1 (failed)" in told.facts.words
    assert await event_kinds(store.database) == ["alarm.outdated"]
    assert len(await outbox(store.database)) == 1


async def test_old_notices_that_were_never_given_are_old_alarms(store: Store, channel: ChannelId) -> None:
    old_ms = NOW_MS - 2 * TRIED_FOR_MS
    await store.database.write(alarm_outbox.give, channel, KEY, facts(old_ms), NOW_MS)
    assert (await take(store, channel, NOW_MS)).outdated == 1


async def test_what_nobody_can_read_holds_up_nothing(store: Store, channel: ChannelId) -> None:
    for _ in range(2):
        await give(store, channel)
        await store.database.write(lambda c: c.execute(outbox_table.update().values(message="{")))
    await give(store, channel, NOW_MS + 1, key="job 2 failed")
    assert (await taken(store, channel, NOW_MS + 1)).facts.last_ms == NOW_MS + 1
    # The second one waits for the end of the first one's time, and goes then.
    assert (await take(store, channel, NOW_MS + MERGED_FOR_MS)).alarm is not None
    assert len(await outbox_ids(store)) == 1


async def outbox_ids(store: Store) -> list[int]:
    return await store.database.read(lambda c: list(c.execute(outbox_table.select()).scalars()))


async def test_a_disabled_or_deleted_channel_sends_nothing(store: Store, channel: ChannelId) -> None:
    off = await add_channel(store.database, "off", disabled=True)
    await give(store, off)
    await give(store, channel)
    assert (await take(store, off, NOW_MS)).alarm is None
    assert await store.database.write(delete_channel, channel) == 1
    assert await outbox(store.database) == []


async def test_a_clock_that_was_set_back_holds_nothing_up(store: Store, channel: ChannelId) -> None:
    await give(store, channel, NOW_MS)
    await store.database.write(alarm_sending.settle_sent, NODE, await taken(store, channel, NOW_MS))
    earlier_ms = NOW_MS - 24 * 3600 * 1000
    await give(store, channel, earlier_ms)
    assert [row["due_ms"] for row in await outbox(store.database)] == [earlier_ms]


async def test_what_waits_when_the_clock_is_set_back_is_sent_at_once(store: Store, channel: ChannelId) -> None:
    """It waits for its equal ones, or for another try, or its node died: none of these takes a day."""
    await give(store, channel, NOW_MS)
    await store.database.write(alarm_sending.settle_sent, NODE, await taken(store, channel, NOW_MS))
    await give(store, channel, NOW_MS + 1)
    await give(store, channel, NOW_MS, key="tried")
    tried = await taken(store, channel, NOW_MS)
    await store.database.write(alarm_sending.settle_failed, NODE, tried, NOW_MS + 600_000, NOW_MS, "no")
    await give(store, channel, NOW_MS, key="of a node that died")
    await taken(store, channel, NOW_MS, OTHER)
    earlier_ms = NOW_MS - 24 * 3600 * 1000
    # What follows joins what waits.
    await give(store, channel, earlier_ms)
    assert await store.database.read(alarm_sending.due_channels, earlier_ms) == [channel]
    sent = [await taken(store, channel, earlier_ms) for _ in range(3)]
    assert [each.facts.count for each in sorted(sent, key=lambda each: each.id)] == [2, 1, 1]
    assert await store.database.read(alarm_sending.due_channels, earlier_ms) == []


async def test_times_that_are_over_are_forgotten(store: Store, channel: ChannelId) -> None:
    await give(store, channel, NOW_MS)
    await store.database.write(alarm_outbox.forget_windows, NOW_MS + MERGED_FOR_MS)
    await store.database.write(alarm_sending.settle_sent, NODE, await taken(store, channel, NOW_MS))
    await give(store, channel, NOW_MS + 1)
    assert [row["due_ms"] for row in await outbox(store.database)] == [NOW_MS + 1]
