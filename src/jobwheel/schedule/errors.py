"""What is wrong with a schedule that somebody typed."""

from typing import ClassVar, Literal

from jobwheel.kernel.errors import JobwheelError

ScheduleField = Literal["schedule_type", "schedule_conf", "time_zone"]


class ScheduleError(JobwheelError):
    """A schedule that cannot be used; the message names the part and the reason: `hour: 24 is not in 0-23`.

    `field` is the API field at fault, `part` the thing inside it (a cron field, the interval, the time zone).
    """

    code: ClassVar[str] = "schedule_invalid"

    def __init__(self, field: ScheduleField, part: str, problem: str) -> None:
        super().__init__(f"{part}: {problem}", field=field)
        self.part = part
        self.problem = problem
