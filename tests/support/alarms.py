"""Channels, failed runs and what waits in the outbox: for tests of alarms."""

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import select

from jobwheel.admin.alarms.channel import Alarm, ChannelTools
from jobwheel.admin.alarms.errors import ChannelError
from jobwheel.admin.alarms.settings import ChannelSetting, SettingType
from jobwheel.admin.domain.alarm import AlarmChannel, AlarmFacts, AlarmKind
from jobwheel.admin.domain.ids import ChannelId, GroupId, JobId, RunId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.store.alarm_channels import insert_channel
from jobwheel.admin.store.alarm_outbox import EndedForAlarm
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.tables import alarm_outbox, event


class Recorded:
    """A kind of channel that keeps what it is given, and fails while `failure` is set."""

    settings = (ChannelSetting("word", SettingType.TEXT), ChannelSetting("key", SettingType.SECRET))
    reads_emails = False

    def __init__(self) -> None:
        self.alarms: list[Alarm] = []
        self.tries = 0
        self.failure: Exception | None = None

    def make(self, values: Mapping[str, Any], tools: ChannelTools) -> "Recorded":
        return self

    async def send(self, alarm: Alarm) -> str:
        self.tries += 1
        if self.failure is not None:
            raise self.failure
        self.alarms.append(alarm)
        return "thanks"

    @property
    def titles(self) -> list[str]:
        return [each.title for each in self.alarms]


def refused() -> ChannelError:
    return ChannelError("nobody is there")


async def add_channel(database: Database, name: str = "ops", kind: str = "recorded", **fields: Any) -> ChannelId:
    channel = AlarmChannel(ChannelId(0), name, kind, fields.pop("settings", {}), **{"is_default": True, **fields})
    return await database.write(insert_channel, channel)


def ended(
    run_id: int,
    job_id: int,
    outcome: Outcome = Outcome.FAILED,
    *,
    at_ms: int,
    is_final: bool = True,
    attempt: int = 1,
) -> EndedForAlarm:
    return EndedForAlarm(RunId(run_id), JobId(job_id), GroupId(1), outcome, at_ms, is_final, attempt)


def facts(at_ms: int, count: int = 1, **fields: Any) -> AlarmFacts:
    return AlarmFacts(fields.pop("kind", AlarmKind.FAILED), at_ms, at_ms, "UTC", count=count, **fields)


async def outbox(database: Database) -> list[Mapping[str, Any]]:
    """The rows of the outbox, each with what it tells."""
    rows = await database.read(lambda c: c.execute(select(alarm_outbox).order_by(alarm_outbox.c.id)).all())
    return [{**row._mapping, "message": msgspec.json.decode(row.message)} for row in rows]


async def event_kinds(database: Database) -> list[str]:
    return await database.read(lambda c: list(c.execute(select(event.c.kind).order_by(event.c.id)).scalars()))
