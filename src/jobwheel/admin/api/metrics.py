"""The engine's figures for Prometheus."""

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from jobwheel.admin.engine.figures import EngineFigures, ExecutorFigures, LatenessFigures
from jobwheel.admin.services.alarm_channels import AlarmChannels
from jobwheel.admin.services.status import EngineStatus


class Metrics:
    """Renders the figures; each app has its own registry."""

    def __init__(self, status: EngineStatus, alarms: AlarmChannels) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_EngineCollector(status))
        self._registry.register(_AlarmCollector(alarms))
        ProcessCollector(registry=self._registry)

    def render(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self._registry)


class _EngineCollector(Collector):
    def __init__(self, status: EngineStatus) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        figures = self._status.collect()
        healthy = not self._status.reasons()
        yield GaugeMetricFamily("jobwheel_healthy", "1 while nothing is wrong, else 0.", value=float(healthy))
        yield from _scheduling(figures)
        yield from _sending(figures)
        yield _lateness(figures.lateness)
        yield from _executors(figures.executors)
        ended = CounterMetricFamily("jobwheel_runs_ended", "Runs that ended on this node.", labels=["outcome"])
        for outcome, count in figures.outcomes.items():
            ended.add_metric([outcome.value], count)
        yield ended


class _AlarmCollector(Collector):
    def __init__(self, alarms: AlarmChannels) -> None:
        self._alarms = alarms

    def collect(self) -> Iterator[Metric]:
        figures = self._alarms.figures
        yield GaugeMetricFamily(
            "jobwheel_alarms_waiting", "Alarms of the cluster that are not sent yet.", value=figures.waiting
        )
        sent = CounterMetricFamily("jobwheel_alarms_sent", "Alarms that this node sent.", labels=["kind"])
        failed = CounterMetricFamily("jobwheel_alarms_failed", "Alarms that this node gave up.", labels=["kind"])
        for family, counts in ((sent, figures.sent), (failed, figures.failed)):
            for kind, count in counts.items():
                family.add_metric([kind], count)
            yield family


def _scheduling(figures: EngineFigures) -> Iterator[Metric]:
    yield CounterMetricFamily("jobwheel_scheduling_passes", "Scheduling passes that succeeded.", value=figures.passes)
    yield CounterMetricFamily(
        "jobwheel_scheduling_pass_failures", "Scheduling passes that failed.", value=figures.failed_passes
    )
    if figures.last_pass_age_s is not None:
        yield GaugeMetricFamily(
            "jobwheel_scheduling_last_pass_age_seconds",
            "Time since the last scheduling pass that succeeded.",
            value=figures.last_pass_age_s,
        )
    yield GaugeMetricFamily(
        "jobwheel_clock_difference_seconds",
        "This host's clock minus the database's.",
        value=figures.clock_difference_s,
    )


def _sending(figures: EngineFigures) -> Iterator[Metric]:
    yield GaugeMetricFamily("jobwheel_wheel_runs", "Runs that wait for their due time.", value=figures.wheel_size)
    yield GaugeMetricFamily(
        "jobwheel_parked_runs", "Runs that came due and wait until their executor has room.", value=figures.parked
    )
    yield GaugeMetricFamily(
        "jobwheel_database_waiting_runs",
        "Runs that came due and wait in the database until memory, or their executor, has room.",
        value=figures.left_in_database,
    )
    yield GaugeMetricFamily(
        "jobwheel_sends_in_flight", "Runs that took off and have no answer yet.", value=figures.sends_in_flight
    )
    yield CounterMetricFamily("jobwheel_runs_sent", "Runs that were sent by this node.", value=figures.runs_sent)
    in_use = GaugeMetricFamily("jobwheel_lane_sends", "Sends under way in a lane.", labels=["lane"])
    limit = GaugeMetricFamily("jobwheel_lane_limit", "The most sends in a lane.", labels=["lane"])
    waiting = GaugeMetricFamily("jobwheel_lane_waiting_runs", "Runs that wait for a lane.", labels=["lane"])
    for lane in figures.lanes:
        in_use.add_metric([lane.name], lane.in_use)
        limit.add_metric([lane.name], lane.limit)
        waiting.add_metric([lane.name], lane.waiting)
    yield from (in_use, limit, waiting)


_OF_EXECUTORS = {
    "running": ("jobwheel_executor_running_runs", "Runs in their handlers, by the executor's last beat."),
    "queued": ("jobwheel_executor_queued_runs", "Runs that wait at the executor, by its last beat."),
    "spooled": ("jobwheel_executor_unreported_results", "Results on the executor's disk, by its last beat."),
    "abandoned": ("jobwheel_executor_abandoned_threads", "Threads that nothing could end, by the last beat."),
}


def _executors(executors: Sequence[ExecutorFigures]) -> Iterator[Metric]:
    for name, (metric, meaning) in _OF_EXECUTORS.items():
        family = GaugeMetricFamily(metric, meaning, labels=["app_name", "address"])
        for each in executors:
            family.add_metric([each.app_name, each.address], getattr(each.load, name))
        yield family


def _lateness(lateness: LatenessFigures) -> Metric:
    buckets = []
    total = 0
    bounds = [*(str(bound) for bound in lateness.upper_bounds_s), "+Inf"]
    for bound, count in zip(bounds, lateness.counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return HistogramMetricFamily(
        "jobwheel_run_lateness_seconds", "How late runs were sent.", buckets=buckets, sum_value=lateness.sum_s
    )
