"""When a schedule will fire, before anybody relies on it."""

from dataclasses import dataclass

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.services.errors import InvalidFieldError
from jobwheel.admin.services.job_plan import schedule_of
from jobwheel.admin.services.jobs import Jobs
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock
from jobwheel.schedule import Language, Schedule, parse_schedule, preview

MOST_TIMES = 100


@dataclass(frozen=True, slots=True)
class Preview:
    """The next times (epoch milliseconds) and the schedule in words."""

    times_ms: tuple[int, ...]
    description: str


@dataclass(frozen=True, slots=True)
class PreviewWish:
    """How many times, from when (None = now) and in which language."""

    count: int = 5
    from_ms: int | None = None
    language: Language = Language.EN


class Previews:
    """The use case of the schedule preview."""

    def __init__(self, clock: Clock, zone: InstallationZone, jobs: Jobs) -> None:
        self._clock = clock
        self._zone = zone
        self._jobs = jobs

    async def of_job(self, job_id: JobId, wish: PreviewWish) -> Preview:
        """The next times of a stored job, as if it were running.

        Raises:
            NotFoundError: there is no such job.
            ScheduleError: what is stored is no schedule.
        """
        job = await self._jobs.get(job_id)
        return self._preview(schedule_of(job.settings, self._zone.name), wish)

    def of_schedule(self, schedule_type: str, conf: str, time_zone: str | None, wish: PreviewWish) -> Preview:
        """The next times of a schedule that somebody is typing.

        Raises:
            ScheduleError: it is none; names the field.
        """
        zone = self._zone.name if time_zone is None else time_zone
        return self._preview(parse_schedule(schedule_type, conf, zone=zone, anchor_ms=None), wish)

    def _preview(self, schedule: Schedule, wish: PreviewWish) -> Preview:
        if not 1 <= wish.count <= MOST_TIMES:
            raise InvalidFieldError("count", f"{wish.count} is not in 1-{MOST_TIMES}")
        from_ms = self._clock.now() if wish.from_ms is None else wish.from_ms
        return Preview(tuple(preview(schedule, from_ms, wish.count)), schedule.describe(wish.language))
