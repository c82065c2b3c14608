"""Reading and saving the scripts of jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.ids import JobId, ScriptVersionId
from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.policies import GlueType
from jobwheel.admin.domain.script import NewScript, Script, ScriptVersion
from jobwheel.admin.services.errors import InvalidFieldError, NotFoundError, VersionConflictError
from jobwheel.admin.services.scoped import Scoped
from jobwheel.admin.services.script_samples import SAMPLES
from jobwheel.admin.services.texts import checked_text
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import insert_event
from jobwheel.admin.store.jobs import get_job, update_job
from jobwheel.admin.store.scripts import get_script, get_version, list_versions, save_script
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.instants import instant_text

MOST_SOURCE_BYTES: Final = 512 * 1024
"""How long a script may be in UTF-8: with its JSON it must fit into a request, to the API and to executors."""

SCRIPT_FIELDS: Final = frozenset({"glue_source", "glue_remark"})
"""Fields of a new job that are its script's."""

_LEAST_REMARK, _MOST_REMARK = 4, 100
_SAMPLES_REMARK: Final = "a sample"
_FIRST_REMARK: Final = "first version"


class Scripts(Scoped):
    """The use cases of scripts. `actor` is the name of who asks."""

    def __init__(self, database: Database, clock: Clock, zone: InstallationZone) -> None:
        self._database = database
        self._clock = clock
        self._zone = zone

    async def get(self, job_id: JobId) -> Script:
        """A job's script.

        Raises:
            NotFoundError: there is no such job, or it runs a handler.
        """
        return await self._database.read(self._get, job_id)

    async def versions(self, job_id: JobId, before_id: int | None, limit: int) -> Sequence[ScriptVersion]:
        """The versions of a job's script that are kept, newest first.

        Raises:
            NotFoundError: as for `get`.
        """
        await self.get(job_id)
        return await self._database.read(list_versions, self._zone, job_id, before_id, limit)

    async def version(self, job_id: JobId, version_id: ScriptVersionId) -> tuple[ScriptVersion, str]:
        """One of them, with its source.

        Raises:
            NotFoundError: there is no such version of this job's script.
        """
        found = await self._database.read(get_version, self._zone, job_id, version_id)
        if found is None:
            raise NotFoundError(f"script of job {job_id} with the version", version_id)
        return found

    async def save(self, job_id: JobId, source: str, remark: str, *, version: int | None, actor: str) -> Script:
        """Make this the job's script; runs that are sent from now on bring it. Runs under way go on with theirs.

        With `version` only if nobody changed the job since it was read.

        Raises:
            NotFoundError: as for `get`.
            InvalidFieldError: source or remark cannot be stored.
            VersionConflictError: somebody changed the job.
        """
        new = NewScript(_checked_source("source", source), _checked_remark("remark", remark))
        return await self._database.write(self.save_in, job_id, new, version, actor)

    def save_in(self, connection: Connection, job_id: JobId, new: NewScript, version: int | None, actor: str) -> Script:
        """Make this the job's script in the caller's transaction; see `save`. What is new has been checked."""
        job = get_job(connection, self._zone, job_id, lock=True)
        if job is None or job.settings.glue_type is GlueType.BEAN or self.hides(job.settings.group_id):
            raise NotFoundError("script of the job", job_id)
        if version is not None and version != job.version:
            raise VersionConflictError("job", version, job.version)
        job = replace(job, updated_ms=self._clock.now(), version=job.version + 1)
        insert_event(connection, write_script(connection, self._zone, job, new, actor))
        update_job(connection, self._zone, job)
        return self._get(connection, job_id)

    def _get(self, connection: Connection, job_id: JobId) -> Script:
        script = get_script(connection, self._zone, job_id)
        if script is None:
            raise NotFoundError("script of the job", job_id)
        return script


def first_script(given: Mapping[str, Any], glue_type: GlueType) -> NewScript | None:
    """The script that a new job begins with: the one that is given, else a sample. None for a job with a handler.

    Raises:
        InvalidFieldError: source or remark cannot be stored, or belong to no script.
    """
    if glue_type is GlueType.BEAN:
        for name in sorted(SCRIPT_FIELDS & given.keys()):
            raise InvalidFieldError(name, "has a meaning for scripts alone, not for glue_type BEAN")
        return None
    if "glue_source" not in given:
        return NewScript(SAMPLES[glue_type], _checked_remark("glue_remark", given.get("glue_remark", _SAMPLES_REMARK)))
    source = _checked_source("glue_source", given["glue_source"])
    return _as_it_runs(
        NewScript(source, _checked_remark("glue_remark", given.get("glue_remark", _FIRST_REMARK))), glue_type
    )


def is_storable_remark(remark: str) -> bool:
    """Whether a remark, which another make may have written, could be written by us."""
    try:
        _checked_remark("remark", remark)
    except InvalidFieldError:
        return False
    return True


def insert_first_script(connection: Connection, zone: InstallationZone, job: Job, script: NewScript) -> None:
    """Write the script of a job that was made in this transaction."""
    save_script(connection, zone, job.id, job.settings.glue_type, script, job.created_ms)


def changed_script(given: Mapping[str, Any]) -> NewScript | None:
    """The script among the changes of a job; None if there is none.

    Raises:
        InvalidFieldError: source or remark cannot be stored, or one of them is missing.
    """
    named = SCRIPT_FIELDS & given.keys()
    if not named:
        return None
    for name in sorted(SCRIPT_FIELDS - named):
        raise InvalidFieldError(name, f"is required with {' and '.join(sorted(named))}")
    return NewScript(
        _checked_source("glue_source", given["glue_source"]), _checked_remark("glue_remark", given["glue_remark"])
    )


def write_script(connection: Connection, zone: InstallationZone, job: Job, script: NewScript, actor: str) -> NewEvent:
    """Write the next script of a job whose row is locked, at `job.updated_ms`; the event is the caller's to write.

    Raises:
        InvalidFieldError: the job runs a handler.
    """
    before = get_script(connection, zone, job.id)
    if before is None or job.settings.glue_type is GlueType.BEAN:
        raise InvalidFieldError("glue_source", "has a meaning for scripts alone, not for glue_type BEAN")
    new = _as_it_runs(script, before.glue_type)
    save_script(connection, zone, job.id, before.glue_type, new, job.updated_ms)
    after = get_script(connection, zone, job.id)
    assert after is not None, "it was written in this transaction"
    details = {"before": _details(before), "after": _details(after)}
    group_id = job.settings.group_id
    return NewEvent(EventKind.JOB_SCRIPT_SAVED, job.updated_ms, actor, group_id, job.id, None, details)


def _as_it_runs(script: NewScript, glue_type: str) -> NewScript:
    """With the line ends that its interpreter takes."""
    if glue_type == GlueType.GLUE_POWERSHELL:
        return script
    return replace(script, source=script.source.replace("\r\n", "\n"))


def _checked_source(field: str, source: str) -> str:
    if not source.strip():
        raise InvalidFieldError(field, "is empty")
    if "\x00" in source:
        raise InvalidFieldError(field, "holds the character U+0000, which is not allowed")
    size = len(source.encode())
    if size > MOST_SOURCE_BYTES:
        raise InvalidFieldError(field, f"has {size} bytes in UTF-8, at most {MOST_SOURCE_BYTES} are allowed")
    return source


def _checked_remark(field: str, remark: str) -> str:
    return checked_text(field, remark.strip(), _MOST_REMARK, least=_LEAST_REMARK)


def _details(script: Script) -> dict[str, object]:
    # Not the source: the versions have it, and who may read a job's events need not be one who may read its script.
    size = len(script.source.encode())
    return {"remark": script.remark, "saved_at": instant_text(script.saved_ms), "bytes": size}
