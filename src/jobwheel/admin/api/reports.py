"""`/api/v1/reports`, and the statistics of a job."""

from datetime import date
from typing import Annotated, Final

from fastapi import APIRouter
from fastapi import Query as QueryMark
from pydantic import BaseModel, Field

from jobwheel.admin.api.caller import WhoAsks
from jobwheel.admin.api.instants import to_text
from jobwheel.admin.api.models import Id, PathId, Query
from jobwheel.admin.domain.histogram import Histogram
from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.report import DayCounts, RunStatistics
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.services.reports import STATISTICS_DAYS, DailyReport, Reports

_MOST_DAYS: Final = 366


class DailyQuery(Query):
    """How many days, today the last of them; of all groups that the caller may see, or of one."""

    days: Annotated[int, Field(ge=1, le=_MOST_DAYS)] = 3
    group_id: Id | None = None


class StatisticsQuery(Query):
    """How many days, today the last of them."""

    days: Annotated[int, Field(ge=1, le=STATISTICS_DAYS)] = 7


class GroupCountsModel(BaseModel):
    """The runs of a group that were triggered on a day: under way or waiting, succeeded, failed."""

    group_id: int
    running: int
    succeeded: int
    failed: int


class DayCountsModel(BaseModel):
    """The runs that were triggered on a day of the installation's zone: under way or waiting, succeeded, failed."""

    day: str
    running: int
    succeeded: int
    failed: int
    groups: list[GroupCountsModel]


class DailyReportModel(BaseModel):
    """Days, the oldest first. The last three are brought up to date each minute, last at `counted_at`."""

    time_zone: str
    counted_at: str | None
    days: list[DayCountsModel]


class PercentilesModel(BaseModel):
    """Of so many runs, in milliseconds; the largest is exact, the others off by a quarter at most. Null: no runs."""

    count: int
    p50_ms: int | None
    p95_ms: int | None
    p99_ms: int | None
    most_ms: int | None


class StatisticsModel(BaseModel):
    """How many runs have ended, and how; how late they were sent; how long those took that their executor ended."""

    count: int
    outcomes: dict[str, int]
    lateness: PercentilesModel
    duration: PercentilesModel


class DayStatisticsModel(StatisticsModel):
    """The same of a day, in the installation's zone."""

    day: str


class JobStatisticsModel(BaseModel):
    """A job's runs over all the days, and of each day on which it ran."""

    time_zone: str
    total: StatisticsModel
    days: list[DayStatisticsModel]


def report_router(reports: Reports, zone_name: str) -> APIRouter:
    """The routes of reports."""
    router = APIRouter(tags=["reports"])

    @router.get("/reports/daily")
    async def daily_report(query: Annotated[DailyQuery, QueryMark()], caller: WhoAsks) -> DailyReportModel:
        group_id = None if query.group_id is None else GroupId(query.group_id)
        return _daily_model(await reports.within(caller.group_ids).daily(query.days, group_id), zone_name)

    @router.get("/jobs/{job_id}/statistics")
    async def job_statistics(job_id: PathId, query: Annotated[StatisticsQuery, QueryMark()]) -> JobStatisticsModel:
        return _job_model(await reports.of_job(JobId(job_id), query.days), zone_name)

    return router


def _daily_model(report: DailyReport, zone_name: str) -> DailyReportModel:
    days = [_day_model(each) for each in report.days]
    return DailyReportModel(time_zone=zone_name, counted_at=to_text(report.counted_ms), days=days)


def _day_model(day: DayCounts) -> DayCountsModel:
    total = day.total
    return DayCountsModel(
        day=day.day.isoformat(),
        running=total.running,
        succeeded=total.succeeded,
        failed=total.failed,
        groups=[
            GroupCountsModel(
                group_id=group_id, running=counts.running, succeeded=counts.succeeded, failed=counts.failed
            )
            for group_id, counts in day.groups.items()
        ],
    )


def _job_model(days: dict[date, RunStatistics], zone_name: str) -> JobStatisticsModel:
    total = RunStatistics(GroupId(0))
    for each in days.values():
        total.merge(each)
    return JobStatisticsModel(
        time_zone=zone_name,
        total=_statistics_model(total),
        days=[DayStatisticsModel(day=day.isoformat(), **dict(_statistics_model(each))) for day, each in days.items()],
    )


def _statistics_model(statistics: RunStatistics) -> StatisticsModel:
    return StatisticsModel(
        count=statistics.count,
        outcomes={each.value: statistics.outcomes[each] for each in Outcome if each in statistics.outcomes},
        lateness=_percentiles_model(statistics.lateness),
        duration=_percentiles_model(statistics.duration),
    )


def _percentiles_model(histogram: Histogram) -> PercentilesModel:
    return PercentilesModel(
        count=histogram.count,
        p50_ms=histogram.percentile_ms(0.5),
        p95_ms=histogram.percentile_ms(0.95),
        p99_ms=histogram.percentile_ms(0.99),
        most_ms=histogram.most_ms if histogram.count else None,
    )
