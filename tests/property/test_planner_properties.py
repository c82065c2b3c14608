"""No planned instant is lost or doubled, whenever passes happen: each is one run or counted in a recorded misfire.

Instants in pause windows and outside the validity period are none: neither runs nor misfires.
"""

from dataclasses import dataclass, field
from itertools import groupby

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from jobwheel.admin.domain.job import DueJob, PauseWindow
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS, MISFIRE_AFTER_MS, MisfireStrategy
from jobwheel.admin.domain.run import TriggerType
from jobwheel.admin.engine.planner import MISFIRES_COUNTED, Misfire, Plan, PlanLimits, plan
from jobwheel.schedule import FixDelaySchedule, Schedule, Window, closed_times, parse_schedule, with_closed_times
from tests.support.engine_parts import SECOND_MS, due_job

ZONE = "Europe/Berlin"


@dataclass(frozen=True, slots=True)
class Pass:
    """A claim: so long after (or, for a clock that was set back, before) the one before, looking so far ahead."""

    gap_ms: int
    look_ahead_ms: int
    most: int


@dataclass
class History:
    """What a row of passes did to one job. `misfires` come with the number of their pass."""

    fired: list[int] = field(default_factory=list)
    made_up: list[int] = field(default_factory=list)
    misfires: list[tuple[int, Misfire]] = field(default_factory=list)
    next_ms: int | None = 0


@dataclass(frozen=True, slots=True)
class Closed:
    """A validity period and pause windows."""

    valid_from_ms: int | None = None
    valid_until_ms: int | None = None
    windows: tuple[PauseWindow, ...] = ()

    def around(self, schedule: Schedule) -> Schedule:
        spans = [Window(each.from_ms, each.until_ms) for each in self.windows]
        return with_closed_times(schedule, closed_times(self.valid_from_ms, self.valid_until_ms, spans))

    def allows(self, instant_ms: int) -> bool:
        if self.valid_from_ms is not None and instant_ms < self.valid_from_ms:
            return False
        if self.valid_until_ms is not None and instant_ms >= self.valid_until_ms:
            return False
        return not any(each.from_ms <= instant_ms < each.until_ms for each in self.windows)


_GAPS = st.one_of(st.integers(0, 2000), st.integers(0, 12_000), st.integers(0, 7_200_000), st.integers(-60_000, 0))
_PASSES = st.lists(
    st.builds(Pass, _GAPS, st.sampled_from([0, 1000, 5000, 60_000]), st.sampled_from([1, 2, 7, 1000])), max_size=12
)
_RATES = st.builds(
    lambda seconds, anchor_s: ("FIX_RATE", str(seconds), SECOND_MS - anchor_s * 1000),
    st.integers(1, 90),
    st.integers(0, 5000),
)
_CRONS = st.sampled_from(
    [
        ("CRON", "* * * * * ?", None),
        ("CRON", "0/7 * * * * ?", None),
        ("CRON", "5,6,59 0/2 * * * ?", None),
        ("CRON", "0 0/15 1-4 * * ?", None),
    ]
)


_MOMENTS = st.one_of(st.integers(-5000, 20_000), st.integers(-5000, 8_000_000)).map(
    lambda offset_ms: SECOND_MS + offset_ms
)
_LENGTHS = st.one_of(st.integers(1, 8000), st.integers(1, 2_000_000))
_WINDOWS = st.builds(lambda from_ms, length_ms: PauseWindow(from_ms, from_ms + length_ms), _MOMENTS, _LENGTHS)
_CLOSED = st.builds(
    Closed, st.none() | _MOMENTS, st.none() | _MOMENTS, st.lists(_WINDOWS, max_size=4).map(lambda w: tuple(sorted(w)))
)


def _play(job: DueJob, schedule: Schedule, passes: list[Pass], most_made_up: int) -> History:
    history = History(next_ms=job.next_ms)
    now_ms = SECOND_MS
    for number, each in enumerate(passes):
        now_ms += each.gap_ms
        limits = PlanLimits(now_ms + each.look_ahead_ms, each.most, most_made_up)
        for _ in range(10_000):
            if history.next_ms is None or history.next_ms > limits.horizon_ms:
                break
            due = msgspec.structs.replace(job, next_ms=history.next_ms)
            planned = plan(due, schedule, now_ms, limits)
            _check_plan(planned, due, now_ms, limits)
            _note(history, number, planned)
        else:
            raise AssertionError("the claim makes no headway")
    return history


def _check_plan(planned: Plan, due: DueJob, now_ms: int, limits: PlanLimits) -> None:
    assert len(planned.fires) <= limits.most_runs
    young = [fire.planned_ms for fire in planned.fires if fire.trigger_type is TriggerType.CRON]
    assert all(now_ms - MISFIRE_AFTER_MS <= each <= limits.horizon_ms for each in young)
    assert (planned.misfire is not None) == (due.next_ms < now_ms - MISFIRE_AFTER_MS)
    assert planned.next_ms is None or planned.next_ms > due.next_ms


def _note(history: History, number: int, planned: Plan) -> None:
    for fire in planned.fires:
        kind = history.fired if fire.trigger_type is TriggerType.CRON else history.made_up
        kind.append(fire.planned_ms)
    if planned.misfire is not None:
        history.misfires.append((number, planned.misfire))
    history.next_ms = planned.next_ms


def _instants(schedule: Schedule, closed: Closed, before_ms: int) -> list[int]:
    """All that the schedule names and nothing closes, by looking at each of them."""
    instants = []
    instant = schedule.next_after(SECOND_MS)
    while instant is not None and instant < before_ms:
        if closed.allows(instant):
            instants.append(instant)
        instant = schedule.next_after(instant)
    return instants


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(_RATES, _CRONS),
    _PASSES,
    st.sampled_from(list(MisfireStrategy)),
    st.just(Closed()) | _CLOSED,
    st.sampled_from([1, 3, 100]),
)
def test_every_instant_is_one_run_or_one_of_a_recorded_misfire(
    timing: tuple[str, str, int | None], passes: list[Pass], strategy: str, closed: Closed, most_made_up: int
) -> None:
    schedule_type, conf, anchor_ms = timing
    bare = parse_schedule(schedule_type, conf, zone=ZONE, anchor_ms=anchor_ms)
    schedule = closed.around(bare)
    first_ms = schedule.next_after(SECOND_MS)
    if first_ms is None:
        assert _instants(bare, closed, SECOND_MS + 8_000_000) == []
        return
    job = due_job(
        schedule_type=schedule_type,
        schedule_conf=conf,
        anchor_ms=anchor_ms,
        misfire_strategy=strategy,
        next_ms=first_ms,
    )
    history = _play(job, schedule, passes, most_made_up)
    end_ms = history.next_ms or closed.valid_until_ms
    assert end_ms is not None, "a schedule without an end has a next time"
    # The oracle: walk over all instants; each is fired or lies in exactly one misfire.
    instants = _instants(bare, closed, end_ms)
    missed: list[int] = []
    wanted: list[int] = []
    for _, of_pass in groupby(history.misfires, lambda noted: noted[0]):
        of_pass_missed: list[int] = []
        for _, misfire in of_pass:
            within = [each for each in instants if misfire.first_ms <= each <= misfire.last_ms]
            assert (misfire.first_ms, misfire.last_ms) == (within[0], within[-1])
            assert (misfire.count, misfire.more) == (min(len(within), MISFIRES_COUNTED), len(within) > MISFIRES_COUNTED)
            of_pass_missed += within
        missed += of_pass_missed
        most = {"DO_NOTHING": 0, "FIRE_ONCE_NOW": 1, "FIRE_ALL": most_made_up}[strategy]
        wanted += of_pass_missed[len(of_pass_missed) - min(most, len(of_pass_missed)) :]
    assert sorted(history.fired + missed) == instants
    assert history.fired == sorted(set(history.fired))
    assert history.made_up == wanted
    assert history.made_up == [each for _, misfire in history.misfires for each in misfire.made_up]


@given(st.integers(1, 90), _CLOSED, _MOMENTS, st.integers(0, 60_000))
def test_a_fixed_delay_runs_at_no_closed_time(interval_s: int, closed: Closed, stored_ms: int, gap_ms: int) -> None:
    schedule = closed.around(FixDelaySchedule(interval_s))
    now_ms = stored_ms + gap_ms
    job = due_job(
        schedule_type="FIX_DELAY", schedule_conf=str(interval_s), misfire_strategy="FIRE_ALL", next_ms=stored_ms
    )
    planned = plan(job, schedule, now_ms, PlanLimits(now_ms, 1000))
    if planned.fires:
        (fire,) = planned.fires
        assert closed.allows(fire.planned_ms)
        assert planned.next_ms == AWAITING_SETTLEMENT_MS
    else:
        assert planned.next_ms is None or (planned.next_ms > now_ms and closed.allows(planned.next_ms))
        assert not closed.allows(stored_ms)
