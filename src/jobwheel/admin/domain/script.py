"""The script of a job that has one, and its versions."""

from dataclasses import dataclass

import msgspec

from jobwheel.admin.domain.ids import JobId, ScriptVersionId

MOST_VERSIONS = 30
"""How many versions of a script are kept, the one that runs among them."""


@dataclass(frozen=True, slots=True)
class Script:
    """A job's script as it runs now. `saved_ms` is epoch milliseconds, `version` the job's, which grows with edits."""

    job_id: JobId
    glue_type: str
    source: str
    remark: str
    saved_ms: int
    version: int


@dataclass(frozen=True, slots=True)
class NewScript:
    """What somebody saves: the source, and a remark that says what has changed."""

    source: str
    remark: str


@dataclass(frozen=True, slots=True)
class ScriptVersion:
    """A version that was saved, without its source."""

    id: ScriptVersionId
    glue_type: str
    remark: str
    saved_ms: int


class DispatchScript(msgspec.Struct, frozen=True, gc=False):
    """What take-off reads of a script. `saved_ms`, epoch milliseconds, tells executors the versions apart."""

    source: str
    saved_ms: int
