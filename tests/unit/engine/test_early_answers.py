"""A yes that waits a moment for its run's result."""

from collections.abc import AsyncIterator

import pytest

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.writes import Accepted
from jobwheel.admin.engine.early_answers import EarlyAnswers
from jobwheel.kernel.fake_clock import FakeClock


def yes(run_id: int, message: str = "200\n") -> Accepted:
    return Accepted(RunId(run_id), 1_795_746_600_250, None, message)


class Written(list[Accepted]):
    """What was given to be written, in its order, and whether much else is.

    Attributes:
        firm: what is written whatever comes.
    """

    def __init__(self) -> None:
        self.firm: list[Accepted] = []
        self.is_behind = False

    def write(self, answer: Accepted, *, early: bool) -> None:
        self.append(answer)
        if not early:
            self.firm.append(answer)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def written() -> Written:
    return Written()


@pytest.fixture
async def answers(clock: FakeClock, written: Written) -> AsyncIterator[EarlyAnswers]:
    kept = EarlyAnswers(written.write, clock, lambda: written.is_behind)
    await kept.start()
    yield kept
    await kept.stop()


async def test_a_result_takes_the_yes_of_its_run_along(
    answers: EarlyAnswers, clock: FakeClock, written: Written
) -> None:
    answers.keep(yes(1))
    answers.keep(yes(2))
    assert answers.take(RunId(1)) == yes(1)
    assert answers.take(RunId(1)) is None
    await clock.advance(0.06)
    assert written == [yes(2)]
    assert not len(answers)


async def test_a_yes_without_a_result_is_written_after_a_moment(
    answers: EarlyAnswers, clock: FakeClock, written: Written
) -> None:
    answers.keep(yes(1))
    await clock.advance(0.04)
    assert not written
    await clock.advance(0.02)
    assert written == [yes(1)]


async def test_of_two_of_one_run_the_first_is_written_first(
    answers: EarlyAnswers, clock: FakeClock, written: Written
) -> None:
    answers.keep(yes(1, "first\n"))
    answers.keep(yes(1, "again\n"))
    assert written == written.firm == [yes(1, "first\n")]
    assert answers.take(RunId(1)) == yes(1, "again\n")
    await clock.advance(0.06)
    assert written == [yes(1, "first\n")]


async def test_what_else_is_written_of_a_run_comes_after_its_yes(answers: EarlyAnswers, written: Written) -> None:
    answers.keep(yes(1))
    answers.write_out(RunId(1))
    answers.write_out(RunId(1))
    assert written == written.firm == [yes(1)]


async def test_the_stop_writes_what_is_kept(answers: EarlyAnswers, written: Written) -> None:
    answers.keep(yes(1))
    await answers.stop()
    assert written == [yes(1)]


async def test_a_result_takes_a_yes_along_that_waits_for_its_turn(
    answers: EarlyAnswers, clock: FakeClock, written: Written
) -> None:
    answers.keep(yes(1))
    answers.keep(yes(2))
    await clock.advance(0.06)
    assert written == [yes(1), yes(2)]
    assert answers.take(RunId(1)) == yes(1)
    first, second = written
    assert not answers.begin(first)
    assert answers.begin(second)
    assert answers.take(RunId(2)) is None
    assert not written.firm


async def test_a_yes_whose_turn_has_come_is_not_mistaken_for_a_later_one(
    answers: EarlyAnswers, clock: FakeClock, written: Written
) -> None:
    answers.keep(yes(1))
    await clock.advance(0.06)
    answers.keep(yes(1, "again\n"))
    # The first was let go already; it is written for certain now, and before the other one.
    assert written == [yes(1), yes(1)]
    assert written.firm == [yes(1)]
    await clock.advance(0.06)
    early, _, again = written
    assert [answers.begin(each) for each in (early, again)] == [False, True]


async def test_while_much_is_to_be_written_it_waits_three_seconds(
    answers: EarlyAnswers, clock: FakeClock, written: Written
) -> None:
    written.is_behind = True
    answers.keep(yes(1))
    await clock.advance(3)
    assert not written
    await clock.advance(0.2)
    assert written == [yes(1)]


async def test_it_waits_no_longer_than_there_is_much(answers: EarlyAnswers, clock: FakeClock, written: Written) -> None:
    written.is_behind = True
    answers.keep(yes(1))
    await clock.advance(1)
    written.is_behind = False
    await clock.advance(0.1)
    assert written == [yes(1)]


async def test_the_stop_waits_for_nothing(answers: EarlyAnswers, clock: FakeClock, written: Written) -> None:
    written.is_behind = True
    answers.keep(yes(1))
    await clock.advance(0.1)
    await answers.stop()
    assert written == [yes(1)]
