"""`/api/v1/runs/rerun`: running what has run already once more."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from jobwheel.admin.api.caller import WhoAsks
from jobwheel.admin.api.instants import from_text, to_text
from jobwheel.admin.api.models import Body, Id
from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.services.errors import InvalidFieldError
from jobwheel.admin.services.job_input import read_choice
from jobwheel.admin.services.reruns import MOST_RUNS, Reruns
from jobwheel.admin.store.run_list import RunFilter


class RerunBody(Body):
    """Which runs: those of `run_ids`, or those that the other fields choose, planned from (included) until (not).

    With an outcome other than succeeded, planned times that succeeded in a later attempt are left out.
    """

    run_ids: list[Id] = Field(default_factory=list, max_length=MOST_RUNS)
    group_id: Id | None = None
    job_id: Id | None = None
    outcome: str | None = None
    planned_from: str | None = None
    planned_until: str | None = None
    dry_run: bool = False

    def selection(self) -> list[RunId] | RunFilter:
        """Which runs."""
        wanted = RunFilter(
            group_id=None if self.group_id is None else GroupId(self.group_id),
            job_id=None if self.job_id is None else JobId(self.job_id),
            outcome=None if self.outcome is None else read_choice("outcome", self.outcome, Outcome),
            planned_from_ms=from_text("planned_from", self.planned_from),
            planned_until_ms=from_text("planned_until", self.planned_until),
        )
        if bool(self.run_ids) == (wanted != RunFilter()):
            problem = "choose runs by their ids, or by group_id, job_id, outcome, planned_from and planned_until"
            raise InvalidFieldError("run_ids", problem)
        return [RunId(each) for each in dict.fromkeys(self.run_ids)] if self.run_ids else wanted


class RerunModel(BaseModel):
    """A run that is repeated, and the new one (null with `dry_run`)."""

    repeats: int
    job_id: int
    planned_at: str | None
    run_id: int | None


class RerunsModel(BaseModel):
    """What is repeated."""

    runs: list[RerunModel]


def rerun_router(reruns: Reruns) -> APIRouter:
    """The route of repetitions."""
    router = APIRouter(prefix="/runs", tags=["runs"])

    @router.post("/rerun")
    async def rerun(body: RerunBody, caller: WhoAsks) -> RerunsModel:
        made = await reruns.within(caller.group_ids).rerun(
            body.selection(), actor=caller.name, trigger_type=caller.trigger_type, dry_run=body.dry_run
        )
        return RerunsModel(
            runs=[
                RerunModel(
                    repeats=each.repeats, job_id=each.job_id, planned_at=to_text(each.planned_ms), run_id=each.run_id
                )
                for each in made
            ]
        )

    return router
