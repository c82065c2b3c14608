"""Scripts as the API spells them."""

from pydantic import BaseModel

from jobwheel.admin.api.instants import to_text
from jobwheel.admin.api.models import Body
from jobwheel.admin.domain.script import Script, ScriptVersion


class ScriptBody(Body):
    """A script to save: `remark` says what has changed; with `version` only if nobody changed the job meanwhile."""

    source: str
    remark: str
    version: int | None = None


class ScriptModel(BaseModel):
    """A job's script as it runs now. `version` is the job's."""

    job_id: int
    glue_type: str
    source: str
    remark: str
    saved_at: str
    version: int


class ScriptVersionModel(BaseModel):
    """A version of a script that was saved."""

    id: int
    glue_type: str
    remark: str
    saved_at: str


class ScriptVersionSourceModel(ScriptVersionModel):
    """A version of a script with its source."""

    source: str


def script_model(script: Script) -> ScriptModel:
    """A script for the API."""
    return ScriptModel(
        job_id=script.job_id,
        glue_type=script.glue_type,
        source=script.source,
        remark=script.remark,
        saved_at=to_text(script.saved_ms),
        version=script.version,
    )


def version_model(version: ScriptVersion) -> ScriptVersionModel:
    """A version for the API."""
    return ScriptVersionModel(
        id=version.id, glue_type=version.glue_type, remark=version.remark, saved_at=to_text(version.saved_ms)
    )


def version_source_model(version: ScriptVersion, source: str) -> ScriptVersionSourceModel:
    """A version with its source for the API."""
    return ScriptVersionSourceModel(**version_model(version).model_dump(), source=source)
