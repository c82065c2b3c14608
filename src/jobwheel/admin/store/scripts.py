"""The scripts of jobs: the one that runs in the job's row, the versions in a table of their own."""

import functools
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, insert, select, update

from jobwheel.admin.domain.ids import JobId, ScriptVersionId
from jobwheel.admin.domain.script import MOST_VERSIONS, DispatchScript, NewScript, Script, ScriptVersion
from jobwheel.admin.store.dialects import Statements, statements
from jobwheel.admin.store.sound import SoundRows
from jobwheel.admin.store.tables import job_info, job_logglue
from jobwheel.admin.store.zone import InstallationZone

_SECOND = timedelta(seconds=1)
_SOURCE_COLUMNS = (job_info.c.id, job_info.c.glue_source)
_SOUND = SoundRows(*_SOURCE_COLUMNS)
_SCRIPT_COLUMNS = (
    *(job_info.c.glue_type, job_info.c.glue_source, job_info.c.glue_remark, job_info.c.glue_updatetime),
    job_info.c.version,
)
_SOUND_SCRIPT = SoundRows(*_SCRIPT_COLUMNS)


def get_script(connection: Connection, zone: InstallationZone, job_id: JobId) -> Script | None:
    """A job's script; None if there is no such job, or it runs a handler."""
    query = select(*_SCRIPT_COLUMNS).where(job_info.c.id == job_id, job_info.c.glue_type != "BEAN")
    found = connection.execute(query).first()
    if found is None:
        return None
    row = _SOUND_SCRIPT.named(found)
    saved_ms = _instant(zone, row.glue_updatetime)
    return Script(job_id, row.glue_type, row.glue_source or "", row.glue_remark or "", saved_ms, row.version)


def load_scripts(
    connection: Connection, zone: InstallationZone, job_ids: Sequence[JobId]
) -> dict[JobId, tuple[DispatchScript, str | None]]:
    """What is sent of these jobs' scripts, as they stand now; and what is wrong with one that is no text, or None."""
    hot = statements(connection)
    # mypy takes no protocol for hashable.
    sources = hot.all_rows(connection, _sources(hot), {"job_ids": list(job_ids)})  # type: ignore[arg-type]
    saved = select(job_info.c.id, job_info.c.glue_updatetime).where(job_info.c.id.in_(job_ids))
    saved_ms = {row.id: _instant(zone, row.glue_updatetime) for row in connection.execute(saved)}
    scripts = {}
    for row in sources:
        (job_id, source), damage = _SOUND.mended(row)
        scripts[JobId(job_id)] = DispatchScript(source or "", saved_ms[job_id]), damage
    return scripts


@functools.cache
def _sources(hot: Statements) -> Select[Any]:
    return select(*_SOURCE_COLUMNS).where(hot.among(job_info.c.id, "job_ids"))


def save_script(
    connection: Connection, zone: InstallationZone, job_id: JobId, glue_type: str, new: NewScript, now_ms: int
) -> int:
    """Make this the script of a job whose row is held; return the instant that it bears.

    That is later than its predecessor's by a second at least, whatever the clock says: executors tell versions apart by
    it, and the column has whole seconds.
    """
    before = connection.execute(select(job_info.c.glue_updatetime).where(job_info.c.id == job_id)).scalar()
    wall = zone.to_wall(now_ms)
    if before is not None:
        wall = max(wall, before + _SECOND)
    values = {"glue_source": new.source, "glue_remark": new.remark}
    connection.execute(update(job_info).where(job_info.c.id == job_id).values(glue_updatetime=wall, **values))
    times = {"add_time": wall, "update_time": wall}
    connection.execute(insert(job_logglue).values(job_id=job_id, glue_type=glue_type, **values, **times))
    _remove_old(connection, job_id)
    return zone.from_wall(wall)


def list_versions(
    connection: Connection, zone: InstallationZone, job_id: JobId, before_id: int | None, limit: int
) -> list[ScriptVersion]:
    """The versions of a job's script, newest first, with ids below `before_id`."""
    columns = (job_logglue.c.id, job_logglue.c.glue_type, job_logglue.c.glue_remark, job_logglue.c.add_time)
    query = select(*columns).where(job_logglue.c.job_id == job_id).order_by(job_logglue.c.id.desc()).limit(limit)
    if before_id is not None:
        query = query.where(job_logglue.c.id < before_id)
    return [_version(row, zone) for row in connection.execute(query)]


def get_version(
    connection: Connection, zone: InstallationZone, job_id: JobId, version_id: ScriptVersionId
) -> tuple[ScriptVersion, str] | None:
    """A version of a job's script, with its source."""
    query = select(job_logglue).where(job_logglue.c.id == version_id, job_logglue.c.job_id == job_id)
    row = connection.execute(query).first()
    return None if row is None else (_version(row, zone), row.glue_source or "")


def delete_versions_of_job(connection: Connection, job_id: JobId) -> None:
    """Remove what a deleted job leaves here."""
    connection.execute(delete(job_logglue).where(job_logglue.c.job_id == job_id))


def _remove_old(connection: Connection, job_id: JobId) -> None:
    # Looked up first: not every database deletes from a table that the same statement reads with a limit.
    newest = select(job_logglue.c.id).where(job_logglue.c.job_id == job_id).order_by(job_logglue.c.id.desc())
    oldest_kept = connection.execute(newest.offset(MOST_VERSIONS - 1).limit(1)).scalar()
    if oldest_kept is not None:
        connection.execute(delete(job_logglue).where(job_logglue.c.job_id == job_id, job_logglue.c.id < oldest_kept))


def _version(row: Row[*tuple[Any, ...]], zone: InstallationZone) -> ScriptVersion:
    saved_ms = _instant(zone, row.add_time)
    return ScriptVersion(ScriptVersionId(row.id), row.glue_type or "", row.glue_remark, saved_ms)


def _instant(zone: InstallationZone, wall: datetime | None) -> int:
    return 0 if wall is None else zone.from_wall(wall)
