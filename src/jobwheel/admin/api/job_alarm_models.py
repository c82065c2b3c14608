"""What a job's people are told of, as the API spells it."""

from typing import Annotated

from pydantic import BaseModel, Field

from jobwheel.admin.api.models import Body, Id, one_of
from jobwheel.admin.domain.alarm import BY_WISH, AlarmFailures


class AlarmRules(Body):
    """What a job's people are told of.

    `failures`: FINAL (no retry follows), EVERY attempt, or NONE; `also`: killed, covered, discarded. A success after a
    failure, a run that was not accepted `late_start_s` after it was due, or is under way for longer than `long_run_s`:
    once each. Of more than `most_open_runs` runs that are due and have not ended: once, until there are fewer again.
    """

    failures: Annotated[str, one_of(AlarmFailures)] = "FINAL"
    also: list[Annotated[str, one_of(BY_WISH)]] = Field(default_factory=list)
    success_after_failure: bool = False
    late_start_s: int | None = None
    long_run_s: int | None = None
    most_open_runs: int | None = None


class AlarmSettingsBody(AlarmRules):
    """What a job's people are told of, and where: the channels of `channel_ids`, or the default ones if it is empty."""

    channel_ids: list[Id] = Field(default_factory=list)


class AlarmSettingsModel(BaseModel):
    """What a job's people are told of, and where."""

    channel_ids: list[int]
    failures: str
    also: list[str]
    success_after_failure: bool
    late_start_s: int | None
    long_run_s: int | None
    most_open_runs: int | None
