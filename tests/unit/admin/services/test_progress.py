from dataclasses import replace

import pytest

from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.run import Outcome, Phase, Run
from jobwheel.admin.services.progress import KEPT_S, MOST_RUNS, MOST_TEXT, ProgressBook, RunProgress
from jobwheel.kernel.fake_clock import FakeClock
from jobwheel.wire.messages import Progress

NOW_MS = 1_795_746_600_250


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW_MS)


@pytest.fixture
def book(clock: FakeClock) -> ProgressBook:
    return ProgressBook(clock)


def run_of(run_id: int) -> Run:
    """A run that its executor has."""
    return Run(
        id=RunId(run_id),
        job_id=JobId(1),
        group_id=GroupId(1),
        trigger_type=None,
        phase=Phase.ACCEPTED,
        outcome=None,
        planned_ms=None,
        due_ms=None,
        triggered_ms=None,
        sent_ms=None,
        accepted_ms=None,
        ended_ms=None,
        executor_address=None,
        handler=None,
        parameter=None,
        attempt=1,
        trigger_code=0,
        trigger_message=None,
        handle_code=0,
        handle_message=None,
    )


async def test_the_last_word_counts(book: ProgressBook, clock: FakeClock) -> None:
    book.note([Progress(1, 0.1, "one"), Progress(2, 0.5)])
    await clock.advance(2)
    book.note([Progress(1, 0.2, "x" * (MOST_TEXT + 1))])
    assert book.of(run_of(1)) == RunProgress(0.2, "x" * MOST_TEXT, NOW_MS + 2000)
    assert book.of(run_of(2)) == RunProgress(0.5, "", NOW_MS)
    assert book.of(run_of(3)) is None


def test_a_run_that_is_done_has_none(book: ProgressBook) -> None:
    book.note([Progress(1, 0.1), Progress(2, 0.2)])
    book.forget([RunId(1), RunId(3)])
    assert book.of(run_of(1)) is None
    done = replace(run_of(2), phase=None, outcome=Outcome.KILLED)
    assert book.of(done) is None
    assert book.of(run_of(2)) is None, "kept although the run was seen to be done"


async def test_what_is_an_hour_old_is_forgotten(book: ProgressBook, clock: FakeClock) -> None:
    book.note([Progress(1, 0.1), Progress(2, 0.2)])
    await clock.advance(KEPT_S - 1)
    book.note([Progress(1, 0.3)])
    # Somebody sets the clock back, which makes nothing younger.
    clock.step(-86_400)
    await clock.advance(1)
    assert book.of(run_of(2)) is None
    assert book.of(run_of(1)) is not None


def test_of_too_many_runs_the_oldest_words_are_forgotten(book: ProgressBook) -> None:
    book.note([Progress(log_id, 0.1) for log_id in range(MOST_RUNS)])
    book.note([Progress(0, 0.2), Progress(MOST_RUNS, 0.1)])
    assert book.of(run_of(1)) is None
    assert all(book.of(run_of(log_id)) for log_id in (0, 2, MOST_RUNS))
