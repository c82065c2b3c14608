"""No planned instant is lost or doubled, whenever passes happen: each is one run or counted in a recorded misfire."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from jobwheel.admin.domain.job import DueJob
from jobwheel.admin.domain.policies import MISFIRE_AFTER_MS
from jobwheel.admin.domain.run import TriggerType
from jobwheel.admin.engine.planner import MISFIRES_COUNTED, Misfire, Plan, plan
from jobwheel.schedule import Schedule, parse_schedule
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
    """What a row of passes did to one job."""

    fired: list[int] = field(default_factory=list)
    made_up: list[int] = field(default_factory=list)
    misfires: list[Misfire] = field(default_factory=list)
    next_ms: int = 0


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


def _play(job: DueJob, schedule: Schedule, passes: list[Pass]) -> History:
    history = History(next_ms=job.next_ms)
    now_ms = SECOND_MS
    for each in passes:
        now_ms += each.gap_ms
        horizon_ms = now_ms + each.look_ahead_ms
        for _ in range(10_000):
            if history.next_ms > horizon_ms:
                break
            due = due_job(
                schedule_type=job.schedule_type,
                schedule_conf=job.schedule_conf,
                anchor_ms=job.anchor_ms,
                misfire_strategy=job.misfire_strategy,
                next_ms=history.next_ms,
            )
            planned = plan(due, schedule, now_ms, horizon_ms, each.most)
            _check_plan(planned, due, now_ms, horizon_ms, each.most)
            _note(history, planned)
        else:
            raise AssertionError("the claim makes no headway")
    return history


def _check_plan(planned: Plan, due: DueJob, now_ms: int, horizon_ms: int, most: int) -> None:
    assert len(planned.fires) <= most
    young = [fire.planned_ms for fire in planned.fires if fire.trigger_type is TriggerType.CRON]
    assert all(now_ms - MISFIRE_AFTER_MS <= each <= horizon_ms for each in young)
    assert (planned.misfire is not None) == (due.next_ms < now_ms - MISFIRE_AFTER_MS)
    assert planned.next_ms is not None
    assert planned.next_ms > due.next_ms


def _note(history: History, planned: Plan) -> None:
    for fire in planned.fires:
        kind = history.fired if fire.trigger_type is TriggerType.CRON else history.made_up
        kind.append(fire.planned_ms)
    if planned.misfire is not None:
        history.misfires.append(planned.misfire)
    assert planned.next_ms is not None
    history.next_ms = planned.next_ms


def _instants(schedule: Schedule, first_ms: int, before_ms: int) -> list[int]:
    instants = []
    instant: int | None = first_ms
    while instant is not None and instant < before_ms:
        instants.append(instant)
        instant = schedule.next_after(instant)
    return instants


@settings(max_examples=150, deadline=None)
@given(st.one_of(_RATES, _CRONS), _PASSES, st.sampled_from(["DO_NOTHING", "FIRE_ONCE_NOW"]))
def test_every_instant_is_one_run_or_one_of_a_recorded_misfire(
    timing: tuple[str, str, int | None], passes: list[Pass], strategy: str
) -> None:
    schedule_type, conf, anchor_ms = timing
    schedule = parse_schedule(schedule_type, conf, zone=ZONE, anchor_ms=anchor_ms)
    first_ms = schedule.next_after(SECOND_MS)
    assert first_ms is not None
    job = due_job(
        schedule_type=schedule_type,
        schedule_conf=conf,
        anchor_ms=anchor_ms,
        misfire_strategy=strategy,
        next_ms=first_ms,
    )
    history = _play(job, schedule, passes)
    instants = _instants(schedule, first_ms, history.next_ms)
    # The oracle: walk over all instants; each is fired or lies in exactly one misfire.
    missed: list[int] = []
    for misfire in history.misfires:
        within = [each for each in instants if misfire.first_ms <= each <= misfire.last_ms]
        assert (misfire.count, misfire.more) == (min(len(within), MISFIRES_COUNTED), len(within) > MISFIRES_COUNTED)
        missed += within
    assert sorted(history.fired + missed) == instants
    assert history.fired == sorted(set(history.fired))
    wanted = [misfire.last_ms for misfire in history.misfires] if strategy == "FIRE_ONCE_NOW" else []
    assert history.made_up == wanted
