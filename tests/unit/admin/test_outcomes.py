import pytest

from jobwheel.admin.domain.run import Outcome, outcome_of_result
from jobwheel.executor import endings
from jobwheel.executor.invocation import Outcome as Ended


@pytest.mark.parametrize(
    ("code", "message", "outcome"),
    [
        (200, None, Outcome.SUCCEEDED),
        (200, "block strategy effect: Cover Early", Outcome.SUCCEEDED),
        (502, None, Outcome.TIMED_OUT),
        (502, "block strategy effect: Cover Early", Outcome.TIMED_OUT),
        (500, None, Outcome.FAILED),
        (500, "", Outcome.FAILED),
        (0, "odd", Outcome.FAILED),
        (501, "Cover Early", Outcome.FAILED),
        (500, "block strategy effect: Discard Later", Outcome.FAILED),
        (500, "block strategy effect: Cover Early [job running, killed]", Outcome.COVERED),
        (500, "block strategy effect\uff1aCover Early", Outcome.COVERED),
    ],
)
def test_what_a_callback_means(code: int, message: str | None, outcome: Outcome) -> None:
    assert outcome_of_result(code, message) is outcome


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        (endings.COVERED, Outcome.COVERED),
        (endings.COVERED_IN_QUEUE, Outcome.COVERED),
        (endings.JOB_KILLED, Outcome.FAILED),
        (endings.RUN_KILLED_IN_QUEUE, Outcome.FAILED),
        (endings.STOPPED, Outcome.FAILED),
        (endings.timed_out(3), Outcome.TIMED_OUT),
    ],
)
def test_what_our_executor_says_is_understood(ending: Ended, outcome: Outcome) -> None:
    assert outcome_of_result(ending.code, ending.message) is outcome
