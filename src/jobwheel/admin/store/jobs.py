"""Jobs: the rows that people make and change. What a claim reads and writes of them is in `claims`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, Select, delete, insert, literal, select, update

from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.job import Job, JobSettings, PauseWindow
from jobwheel.admin.domain.policies import (
    BlockStrategy,
    GlueType,
    MisfireStrategy,
    RetryBackoff,
    RouteStrategy,
    RunLimitOverflow,
    UncertainSend,
)
from jobwheel.admin.store.job_alarms import delete_watch, read_alarms, stored_alarms, write_watch
from jobwheel.admin.store.job_children import read_children
from jobwheel.admin.store.pause_windows import delete_windows, read_windows, write_windows
from jobwheel.admin.store.sound import SoundRows
from jobwheel.admin.store.tables import job_info
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.schedule import ScheduleType

Choice = TypeVar("Choice", bound=StrEnum)


# Scripts are long, and read apart.
_COLUMNS = [column for column in job_info.c if column is not job_info.c.glue_source]
_SOUND = SoundRows(*_COLUMNS)

_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs to list; None = all. `name` is a part of the name, `tag` one of the tags.

    The case of either does not matter. `group_ids` are those that the caller may see.
    """

    group_id: GroupId | None = None
    running: bool | None = None
    handler: str | None = None
    name: str | None = None
    tag: str | None = None
    group_ids: frozenset[GroupId] | None = None


def insert_job(connection: Connection, zone: InstallationZone, job: Job) -> JobId:
    """Write a new job; `job.id` is not looked at."""
    values = {
        **_values(zone, job),
        "add_time": zone.to_wall(job.created_ms),
        # A script gets its own when it is written.
        "glue_updatetime": zone.to_wall(job.created_ms) if job.settings.glue_type is GlueType.BEAN else None,
        "created_ms": job.created_ms,
    }
    inserted = connection.execute(insert(job_info).values(values))
    assert inserted.inserted_primary_key is not None
    job_id = JobId(inserted.inserted_primary_key[0])
    write_windows(connection, job_id, job.settings.pause_windows)
    write_watch(connection, job_id, job.settings.alarms, is_new=True)
    return job_id


def get_job(connection: Connection, zone: InstallationZone, job_id: JobId, *, lock: bool = False) -> Job | None:
    """A job by its id; with `lock` its row is held until the end of the transaction."""
    query = select(*_COLUMNS).where(job_info.c.id == job_id)
    row = connection.execute(query.with_for_update() if lock else query).first()
    return None if row is None else _job(row, zone, read_windows(connection, [job_id]).get(job_id, ()))


def find_job_by_key(connection: Connection, group_id: GroupId, key: str) -> JobId | None:
    """The job of a group that has this key."""
    query = select(job_info.c.id).where(job_info.c.job_group == group_id, job_info.c.job_key == key)
    found = connection.execute(query).scalar()
    return None if found is None else JobId(found)


def list_jobs(
    connection: Connection, zone: InstallationZone, wanted: JobFilter, after_id: int, limit: int
) -> list[Job]:
    """Jobs by ascending id, from the one after `after_id` on."""
    query = select(*_COLUMNS).where(job_info.c.id > after_id).order_by(job_info.c.id).limit(limit)
    rows = connection.execute(_filtered(query, wanted)).all()
    windows = read_windows(connection, [row.id for row in rows])
    return [_job(row, zone, windows.get(row.id, ())) for row in rows]


def update_job(connection: Connection, zone: InstallationZone, job: Job) -> None:
    """Write a job that was read with `lock` and changed."""
    connection.execute(update(job_info).where(job_info.c.id == job.id).values(_values(zone, job)))
    write_windows(connection, job.id, job.settings.pause_windows)
    write_watch(connection, job.id, job.settings.alarms)


def set_next_time(connection: Connection, job_id: JobId, next_ms: int) -> None:
    """Move a job's next time alone; its row must be held."""
    connection.execute(update(job_info).where(job_info.c.id == job_id).values(trigger_next_time=next_ms))


def delete_job(connection: Connection, job_id: JobId) -> None:
    """Remove a job's row and its windows. Its run rows go later, its events stay."""
    delete_windows(connection, job_id)
    delete_watch(connection, job_id)
    connection.execute(delete(job_info).where(job_info.c.id == job_id))


def _filtered(query: Select[Any], wanted: JobFilter) -> Select[Any]:
    if wanted.group_ids is not None:
        query = query.where(job_info.c.job_group.in_(wanted.group_ids))
    if wanted.group_id is not None:
        query = query.where(job_info.c.job_group == wanted.group_id)
    if wanted.running is not None:
        query = query.where(job_info.c.trigger_status == int(wanted.running))
    if wanted.handler is not None:
        query = query.where(job_info.c.executor_handler == wanted.handler)
    if wanted.name is not None:
        query = query.where(job_info.c.job_desc.icontains(wanted.name, autoescape=True))
    if wanted.tag is not None:
        enclosed = literal(",") + job_info.c.tags + literal(",")
        query = query.where(enclosed.icontains(f",{wanted.tag},", autoescape=True))
    return query


def _values(zone: InstallationZone, job: Job) -> Mapping[str, object]:
    settings = job.settings
    return {
        "job_group": settings.group_id,
        "job_desc": settings.name,
        "update_time": zone.to_wall(job.updated_ms),
        "author": settings.author,
        "alarm_email": settings.alarm_email,
        "schedule_type": settings.schedule_type.value,
        "schedule_conf": settings.schedule_conf,
        "misfire_strategy": settings.misfire_strategy.value,
        "executor_route_strategy": settings.route_strategy.value,
        "executor_handler": settings.handler,
        "executor_param": settings.parameter,
        "executor_block_strategy": settings.block_strategy.value,
        "executor_timeout": settings.timeout_s,
        "executor_fail_retry_count": settings.retry_count,
        "glue_type": settings.glue_type.value,
        "child_jobid": ",".join(str(child) for child in settings.child_job_ids),
        "trigger_status": int(job.running),
        "trigger_last_time": job.last_ms or 0,
        "trigger_next_time": job.next_ms or 0,
        "time_zone": settings.time_zone,
        "anchor_ms": settings.anchor_ms,
        "valid_from_ms": settings.valid_from_ms,
        "valid_until_ms": settings.valid_until_ms,
        "run_limit": settings.run_limit,
        "run_limit_overflow": None if settings.run_limit is None else settings.run_limit_overflow.value,
        "retry_interval_s": settings.retry_interval_s,
        "retry_backoff": settings.retry_backoff.value,
        "retry_most_s": settings.retry_most_s,
        "uncertain_send": settings.uncertain_send.value,
        "retention_days": settings.retention_days,
        "alarm_settings": stored_alarms(settings.alarms),
        "tags": ",".join(settings.tags) or None,
        "job_key": settings.key,
        "updated_ms": job.updated_ms,
        "version": job.version,
    }


def _job(found: Row[tuple[object, ...]], zone: InstallationZone, windows: Sequence[PauseWindow]) -> Job:
    # What somebody wrote by hand must neither hide the other jobs of a list nor keep people from setting it right.
    row = _SOUND.named(found)
    return Job(
        id=JobId(row.id),
        settings=_settings(row, windows),
        running=row.trigger_status == 1,
        last_ms=_in_calendar(row.trigger_last_time) or None,
        next_ms=_in_calendar(row.trigger_next_time) or None,
        created_ms=_instant(row.created_ms, row.add_time, zone),
        updated_ms=_instant(row.updated_ms, row.update_time, zone),
        version=row.version,
    )


def _settings(row: Any, windows: Sequence[PauseWindow]) -> JobSettings:
    return JobSettings(
        group_id=GroupId(row.job_group),
        name=row.job_desc,
        author=row.author or "",
        alarm_email=row.alarm_email or "",
        schedule_type=_choice(ScheduleType, row.schedule_type, ScheduleType.NONE),
        schedule_conf=row.schedule_conf or "",
        time_zone=row.time_zone,
        anchor_ms=_in_calendar(row.anchor_ms),
        misfire_strategy=_choice(MisfireStrategy, row.misfire_strategy, MisfireStrategy.DO_NOTHING),
        route_strategy=_choice(RouteStrategy, row.executor_route_strategy, RouteStrategy.FIRST),
        block_strategy=_choice(BlockStrategy, row.executor_block_strategy, BlockStrategy.SERIAL_EXECUTION),
        handler=row.executor_handler or "",
        parameter=row.executor_param or "",
        timeout_s=row.executor_timeout,
        retry_count=row.executor_fail_retry_count,
        glue_type=_choice(GlueType, row.glue_type, GlueType.BEAN),
        child_job_ids=read_children(row.child_jobid),
        key=row.job_key,
        tags=tuple(_items(row.tags)),
        valid_from_ms=_in_calendar(row.valid_from_ms),
        valid_until_ms=_in_calendar(row.valid_until_ms),
        pause_windows=tuple(windows),
        run_limit=row.run_limit,
        run_limit_overflow=_choice(RunLimitOverflow, row.run_limit_overflow, RunLimitOverflow.WAIT),
        retry_interval_s=row.retry_interval_s,
        retry_backoff=_choice(RetryBackoff, row.retry_backoff, RetryBackoff.FIXED),
        retry_most_s=row.retry_most_s,
        uncertain_send=_choice(UncertainSend, row.uncertain_send, UncertainSend.ASK),
        retention_days=row.retention_days,
        alarms=read_alarms(row.alarm_settings),
    )


def _items(text: str | None) -> list[str]:
    return [item.strip() for item in (text or "").split(",") if item.strip()]


def _choice(choices: type[Choice], text: str | None, default: Choice) -> Choice:
    """A name that somebody wrote by hand and nobody knows must not hide all the other jobs of a list."""
    return choices(text) if text in set(choices) else default


def _instant(ours_ms: int | None, wall: Any, zone: InstallationZone) -> int:
    if ours_ms is not None:
        return _in_calendar(ours_ms) or 0
    return 0 if wall is None else zone.from_wall(wall)


def _in_calendar(instant_ms: int | None) -> int | None:
    """An instant that can be shown; one beyond the years 1 to 9999, which no program of ours writes, is none."""
    return instant_ms if instant_ms is not None and _FIRST_MS <= instant_ms <= _LAST_MS else None
