"""From the end of a run to its people: merged, tried again, by whichever node lives."""

import asyncio
import json
from typing import Any

import pytest
from sqlalchemy import update

from jobwheel.admin.alarms.channel import Alarm
from jobwheel.admin.domain.alarm import AlarmFailures, JobAlarms
from jobwheel.admin.domain.ids import ChannelId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.services.alarm_sending import LEASE_MS
from jobwheel.admin.store.alarm_sending import settle_sent
from jobwheel.admin.store.job_alarms import stored_alarms
from jobwheel.admin.store.tables import alarm_channel
from tests.support.alarm_scene import AlarmScene
from tests.support.alarms import add_channel, ended, event_kinds, outbox, refused
from tests.support.http_peer import HttpPeer, never
from tests.support.live_admin import until
from tests.support.smtp_server import SmtpServer
from tests.support.store import NOW_MS

SMTP = {"host": "127.0.0.1", "security": "none", "from": "jobs@example.com", "to": ["ops@example.com"]}


def port_of(peer: HttpPeer) -> int:
    assert peer._server is not None
    port: int = peer._server.sockets[0].getsockname()[1]
    return port


async def failed_run(scene: AlarmScene, job_id: int, **columns: Any) -> int:
    run_id = (await scene.store.pending(None, job_id=job_id))[0].id
    await scene.store.change_run(run_id, phase=None, outcome="failed", alarm_status=1, **columns)
    return run_id


async def test_a_failed_run_is_told_with_what_is_known_of_it(scene: AlarmScene) -> None:
    await add_channel(scene.database)
    group_id = await scene.store.group()
    job_id = await scene.job(job_group=group_id, author="Lin", alarm_email="lin@example.com")
    run_id = await failed_run(scene, job_id, handle_msg="LookupError: no account " + "x" * 2000)
    await scene.end(ended(run_id, job_id, at_ms=NOW_MS, attempt=3))
    await scene.send(scene.sender())
    (alarm,) = scene.recorded.alarms
    fields = alarm.fields
    assert (fields["job"], fields["owner"], fields["run_id"]) == ("settle accounts", "Lin", str(run_id))
    assert (fields["attempts"], fields["planned"]) == ("3", "2026-11-27 10:30:00 +0800")
    assert fields["message"].startswith("LookupError: no account x")
    assert len(fields["message"]) == 1000
    assert alarm.emails == ("lin@example.com",)
    assert (await scene.store.run_row(run_id))["alarm_status"] == 2  # type: ignore[arg-type]
    assert await outbox(scene.database) == []


async def test_one_that_a_slow_database_gave_too_late_is_sent_once(
    scene: AlarmScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it were sent, another node would take it."""
    channel = await add_channel(scene.database)
    await scene.end(ended(1, await scene.job(), at_ms=NOW_MS))
    one, other, write = scene.sender(1), scene.sender(2), scene.database.write

    async def slowly(work: Any, *args: Any) -> Any:
        answer = await write(work, *args)
        await scene.clock.advance(LEASE_MS / 1000 - 3)
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(scene.database, "write", slowly)
        assert await one.send_next(channel)
    assert scene.recorded.titles == []
    await scene.clock.advance(3)
    assert await other.send_next(channel)
    assert not await one.send_next(channel)
    assert scene.recorded.titles == ["[Jobwheel] settle accounts failed"]
    assert await outbox(scene.database) == []


async def test_500_failures_before_a_black_hole_hold_up_nobody_and_are_one_message_at_its_end(
    scene: AlarmScene,
) -> None:
    await add_channel(scene.database, "other")
    job_id = await scene.job()
    async with HttpPeer(otherwise=never) as hole, SmtpServer() as server:
        mail = await add_channel(scene.database, "mail", "mail", settings={**SMTP, "port": port_of(hole)})
        sender = scene.sender()
        await scene.end(ended(1, job_id, at_ms=NOW_MS))
        # The look does not wait for the hole, and the other channel tells of the failure at once.
        await sender.run_once()
        await until(lambda: scene.recorded.titles == ["[Jobwheel] settle accounts failed"])
        for minute in range(10):
            runs = range(2 + 50 * minute, min(52 + 50 * minute, 501))
            await scene.end(*(ended(run, job_id, at_ms=scene.clock.now()) for run in runs))
            await scene.send(sender)
            await scene.clock.advance(59)
        assert server.mails == []
        settings = json.dumps({**SMTP, "port": server.port})
        repaired = update(alarm_channel).where(alarm_channel.c.id == mail).values(settings=settings)
        await scene.database.write(lambda c: c.execute(repaired))
        await scene.clock.advance(600)
        await scene.send(scene.sender(tools=scene.patient))
        assert [sent["subject"] for _, sent in server.mails] == ["[Jobwheel] settle accounts failed (500 times)"]
        # One at once, one for all that followed within the time.
        assert scene.recorded.titles == [
            "[Jobwheel] settle accounts failed",
            "[Jobwheel] settle accounts failed (499 times)",
        ]


async def test_a_failing_channel_is_tried_for_an_hour_less_and_less_often(scene: AlarmScene) -> None:
    await add_channel(scene.database)
    job_id = await scene.job()
    run_id = await failed_run(scene, job_id)
    await scene.end(ended(run_id, job_id, at_ms=NOW_MS))
    scene.recorded.failure = refused()
    sender = scene.sender()
    for _ in range(3700):
        await scene.send(sender)
        if not await outbox(scene.database):
            break
        (row,) = await outbox(scene.database)
        await scene.clock.advance(max(1, (row["due_ms"] - scene.clock.now()) / 1000))
    assert 7 <= scene.recorded.tries <= 12
    assert scene.clock.now() - NOW_MS < 3600_000
    assert await event_kinds(scene.database) == ["alarm.given_up"]
    assert (await scene.store.run_row(run_id))["alarm_status"] == 3  # type: ignore[arg-type]
    assert (sender.figures.failed["recorded"], sender.figures.sent["recorded"]) == (1, 0)


async def test_a_channel_that_crashes_is_a_channel_that_fails(scene: AlarmScene) -> None:
    await add_channel(scene.database)
    await scene.end(ended(1, await scene.job(), at_ms=NOW_MS))
    scene.recorded.failure = ZeroDivisionError("of a plug-in")
    await scene.send(scene.sender())
    (row,) = await outbox(scene.database)
    assert (row["owner"], row["attempts"]) == (None, 1)
    scene.recorded.failure = None
    await scene.clock.advance(10)
    await scene.send(scene.sender())
    assert len(scene.recorded.alarms) == 1


class Held:
    """Makes a channel's sends wait, or end without anybody hearing of it."""

    def __init__(self, scene: AlarmScene) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self._send = scene.recorded.send

    async def send(self, alarm: Alarm) -> str:
        said = await self._send(alarm)
        self.begun.set()
        await self.go_on.wait()
        return said


async def test_another_node_sends_what_one_that_died_was_sending(
    scene: AlarmScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It repeats that one at most, and loses none."""
    await add_channel(scene.database)
    for _ in range(3):
        await scene.end(ended(1, await scene.job(), at_ms=NOW_MS))
    held = Held(scene)
    with monkeypatch.context() as patched:
        patched.setattr(scene.recorded, "send", held.send)
        dying = scene.sender(1)
        await dying.run_once()
        await asyncio.wait_for(held.begun.wait(), 5)
        # As after kill -9: nothing of it comes back to the database.
        await dying._cancel_tasks()
    heir = scene.sender(2)
    await scene.send(heir)
    assert len(scene.recorded.alarms) == 3
    await scene.clock.advance(LEASE_MS / 1000)
    await scene.send(heir)
    assert await outbox(scene.database) == []
    jobs = [each.fields["job_id"] for each in scene.recorded.alarms]
    assert len(set(jobs)) == 3
    assert len(jobs) == 4


async def test_what_was_sent_while_the_database_went_away_is_not_sent_again(
    scene: AlarmScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = await add_channel(scene.database)
    await scene.end(ended(1, await scene.job(), at_ms=NOW_MS))
    sender = scene.sender()
    write = scene.database.write

    async def away(work: Any, *args: Any, **kwargs: Any) -> Any:
        if work is settle_sent:
            raise ConnectionError("the database is away")
        return await write(work, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(scene.database, "write", away)
        with pytest.raises(ConnectionError):
            await sender.send_next(channel)
    await scene.clock.advance(LEASE_MS / 1000)
    assert not await sender.send_next(channel)
    assert len(scene.recorded.alarms) == 1
    assert await outbox(scene.database) == []


class TestChoice:
    async def told(self, scene: AlarmScene, job_id: int, outcome: Outcome = Outcome.FAILED, **fields: Any) -> list[str]:
        await scene.end(ended(1, job_id, outcome, at_ms=NOW_MS, **fields))
        names = {
            row.id: row.name for row in await scene.database.read(lambda c: c.execute(alarm_channel.select()).all())
        }
        return [names[row["channel_id"]] for row in await outbox(scene.database)]

    async def job(self, scene: AlarmScene, alarms: JobAlarms, **columns: Any) -> int:
        return await scene.job(alarm_settings=stored_alarms(alarms), **columns)

    async def test_the_jobs_channels_are_meant_if_it_names_any(self, scene: AlarmScene) -> None:
        await add_channel(scene.database, "default")
        own = await add_channel(scene.database, "own", is_default=False)
        off = await add_channel(scene.database, "off", disabled=True)
        job_id = await self.job(scene, JobAlarms(channel_ids=(own, off)))
        assert await self.told(scene, job_id) == ["own"]

    async def test_channels_that_are_gone_are_stood_in_for_by_the_default_ones(self, scene: AlarmScene) -> None:
        await add_channel(scene.database, "default")
        await add_channel(scene.database, "other", is_default=False)
        job_id = await self.job(scene, JobAlarms(channel_ids=(ChannelId(4711),)))
        assert await self.told(scene, job_id) == ["default"]

    async def test_attempts_that_are_followed_by_a_retry_are_told_by_wish_alone(self, scene: AlarmScene) -> None:
        await add_channel(scene.database)
        assert await self.told(scene, await scene.job(), is_final=False) == []
        job_id = await self.job(scene, JobAlarms(failures=AlarmFailures.EVERY))
        assert await self.told(scene, job_id, is_final=False) == ["ops"]

    async def test_a_discarded_run_is_told_by_wish_alone(self, scene: AlarmScene) -> None:
        await add_channel(scene.database)
        assert await self.told(scene, await scene.job(), Outcome.DISCARDED) == []
        job_id = await self.job(scene, JobAlarms(also=(Outcome.DISCARDED,)))
        assert await self.told(scene, job_id, Outcome.DISCARDED) == ["ops"]

    async def test_of_a_job_that_is_gone_nobody_is_told(self, scene: AlarmScene) -> None:
        await add_channel(scene.database)
        assert await self.told(scene, 4711) == []

    async def test_mail_without_anybody_to_send_to_is_not_tried(self, scene: AlarmScene) -> None:
        await add_channel(scene.database, "mail", "mail", settings={"host": "x"})
        assert await self.told(scene, await scene.job()) == []
        assert await self.told(scene, await scene.job(alarm_email="lin@example.com")) == ["mail"]


async def test_a_late_run_and_then_its_failure_and_then_success(scene: AlarmScene) -> None:
    await add_channel(scene.database)
    alarms = JobAlarms(success_after_failure=True)
    job_id = await scene.job(alarm_settings=stored_alarms(alarms))
    run_id = await failed_run(scene, job_id)
    await scene.end(ended(run_id, job_id, at_ms=NOW_MS))
    watch = scene.watch()
    assert await watch.run_once() == 0
    success = (await scene.store.pending(None, job_id=job_id))[0].id
    await scene.store.change_run(success, phase=None, outcome="succeeded", ended_ms=NOW_MS)
    assert await watch.run_once() == 1
    assert await watch.run_once() == 0
    await scene.distribute()
    await scene.send(scene.sender())
    assert [each.is_good for each in scene.recorded.alarms] == [False, True]
    assert scene.recorded.titles[1] == "[Jobwheel] settle accounts succeeds again"


async def test_the_figures_tell_what_waits(scene: AlarmScene) -> None:
    await add_channel(scene.database)
    await scene.end(ended(1, await scene.job(), at_ms=NOW_MS))
    sender = scene.sender()
    await scene.send(sender)
    assert (sender.figures.waiting, sender.figures.sent["recorded"]) == (1, 1)
    await scene.send(sender)
    assert sender.figures.waiting == 0
