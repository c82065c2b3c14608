"""Gives what happened to channels: which alarms there are, of whom, for whom."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jobwheel.admin.alarms.channel import ChannelKind
from jobwheel.admin.alarms.settings import read_emails
from jobwheel.admin.domain.alarm import AlarmChannel, AlarmFacts, AlarmKind, Notice, merged
from jobwheel.admin.domain.ids import ChannelId, JobId, RunId
from jobwheel.admin.store import Connection
from jobwheel.admin.store.alarm_channels import list_channels
from jobwheel.admin.store.alarm_outbox import (
    forget_windows,
    give,
    has_ungiven,
    hold_alarms,
    take_ungiven,
)
from jobwheel.admin.store.alarm_subjects import JobFacts, RunFacts, read_group_names, read_jobs, read_runs
from jobwheel.admin.store.alarm_watch import note_failing
from jobwheel.admin.store.database import Database

_AT_ONCE: Final = 500
_FAILURES: Final = (AlarmKind.FAILED, AlarmKind.TIMED_OUT, AlarmKind.LOST)


@dataclass(frozen=True, slots=True)
class Subjects:
    """What the notices of a batch are about."""

    jobs: Mapping[int, JobFacts]
    groups: Mapping[int, str]
    runs: Mapping[int, RunFacts]


class AlarmDistribution:
    """Takes what happened out of the outbox and puts it back for each channel that is to tell it.

    One node does it at a time. The transaction that takes a notice gives it: none is lost, none given twice.
    """

    def __init__(self, database: Database, zone_name: str, kinds: Mapping[str, ChannelKind]) -> None:
        self._database = database
        self._zone_name = zone_name
        self._kinds = kinds

    async def run_once(self) -> int:
        """Give all that is there; says how many notices there were."""
        taken = 0
        while await self._database.read(has_ungiven):
            taken += await self._database.write(self._give_some, self._database.now_ms())
        return taken

    def _give_some(self, connection: Connection, now_ms: int) -> int:
        hold_alarms(connection)
        ungiven, count = take_ungiven(connection, _AT_ONCE)
        notices = [each.notice for each in ungiven]
        subjects = _read_subjects(connection, notices)
        note_failing(connection, _failing(notices, subjects))
        given = self._given(notices, subjects, list_channels(connection))
        for (channel_id, merge_key), facts in given.items():
            give(connection, channel_id, merge_key, facts, now_ms)
        forget_windows(connection, now_ms)
        return count

    def _given(
        self, notices: Sequence[Notice], subjects: Subjects, channels: Sequence[AlarmChannel]
    ) -> dict[tuple[ChannelId, str], AlarmFacts]:
        """What each channel gets; equal alarms of the batch are one already."""
        given: dict[tuple[ChannelId, str], AlarmFacts] = {}
        for notice in notices:
            if not _is_wanted(notice, subjects):
                continue
            facts = facts_of(notice, subjects, self._zone_name)
            for channel in chosen_channels(notice, subjects, channels):
                if self._has_nobody(channel, facts):
                    continue
                key = (channel.id, merge_key(channel.id, notice))
                given[key] = merged(given[key], facts) if key in given else facts
        return given

    def _has_nobody(self, channel: AlarmChannel, facts: AlarmFacts) -> bool:
        """Whether a channel for addresses of jobs has none at all."""
        kind = self._kinds.get(channel.kind)
        return kind is not None and kind.reads_emails and not channel.settings.get("to") and not facts.emails


def chosen_channels(notice: Notice, subjects: Subjects, channels: Sequence[AlarmChannel]) -> list[AlarmChannel]:
    """The channels that tell a notice: those that its job names, if any is there; else the default ones."""
    if notice.kind.of_admins:
        return [each for each in channels if each.for_admins and not each.disabled]
    job = None if notice.job_id is None else subjects.jobs.get(notice.job_id)
    named = set() if job is None else set(job.alarms.channel_ids)
    there = [each for each in channels if each.id in named]
    if not there:
        # All that were named are gone: better at the wrong place than nowhere.
        there = [each for each in channels if each.is_default]
    return [each for each in there if not each.disabled]


def facts_of(notice: Notice, subjects: Subjects, zone_name: str) -> AlarmFacts:
    """What an alarm tells of a notice."""
    job = None if notice.job_id is None else subjects.jobs.get(notice.job_id)
    run = None if notice.run_id is None else subjects.runs.get(notice.run_id)
    group = "" if notice.group_id is None else subjects.groups.get(notice.group_id, "")
    words = notice.words or (run.words if run is not None else "")
    return AlarmFacts(
        kind=notice.kind,
        first_ms=notice.at_ms,
        last_ms=notice.at_ms,
        zone=(job.time_zone if job is not None else None) or zone_name,
        group=group,
        job_id=notice.job_id,
        job="" if job is None else job.name,
        owner="" if job is None else job.owner,
        run_id=notice.run_id,
        planned_ms=None if run is None else run.planned_ms,
        attempt=notice.attempt,
        words=words,
        node=notice.node,
        emails=() if job is None else read_emails(job.emails),
        run_ids=() if notice.run_id is None else (notice.run_id,),
    )


def merge_key(channel_id: ChannelId, notice: Notice) -> str:
    """What is equal for a channel: alarms of one kind, of one job, of one group, or of the admin."""
    if notice.kind.of_admins:
        subject = "admin"
    elif notice.job_id is not None:
        subject = f"job {notice.job_id}"
    else:
        subject = f"group {notice.group_id}"
    text = f"{channel_id} {subject} {notice.kind.value}"
    return text if len(text) <= 64 else hashlib.sha256(text.encode()).hexdigest()


def _read_subjects(connection: Connection, notices: Sequence[Notice]) -> Subjects:
    return Subjects(
        read_jobs(connection, {each.job_id for each in notices if each.job_id is not None}),
        read_group_names(connection, {each.group_id for each in notices if each.group_id is not None}),
        read_runs(connection, {each.run_id for each in notices if each.run_id is not None}),
    )


def _is_wanted(notice: Notice, subjects: Subjects) -> bool:
    if notice.job_id is None:
        return True
    job = subjects.jobs.get(notice.job_id)
    # The runs of a job that is gone are nobody's any more.
    return job is not None and job.alarms.wants(notice.kind, is_final=notice.is_final)


def _failing(notices: Sequence[Notice], subjects: Subjects) -> dict[JobId, RunId]:
    failing: dict[JobId, RunId] = {}
    for each in notices:
        if each.job_id is None or each.run_id is None or not each.is_final or each.kind not in _FAILURES:
            continue
        job = subjects.jobs.get(each.job_id)
        if job is not None and job.alarms.success_after_failure:
            failing[each.job_id] = max(each.run_id, failing.get(each.job_id, each.run_id))
    return failing
