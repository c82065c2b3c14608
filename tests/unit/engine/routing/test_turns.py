from jobwheel.admin.domain.ids import JobId, RunId
from jobwheel.admin.engine.routing.turns import Turns
from tests.support.engine_parts import candidates_of, hosts

A, B = candidates_of("http://a:1/", "http://b:1/")
JOB = JobId(7)
DAY_MS = 24 * 3600 * 1000


def test_a_run_has_the_order_that_was_chosen_of_the_same_candidates() -> None:
    turns = Turns()
    turns.keep(RunId(1), [B, A], 0)
    assert [turns.take(RunId(1), JOB, (A, B), at_ms) for at_ms in (1, 2)] == [[B, A], [B, A]]
    assert turns.take(RunId(2), JOB, (A, B), 1) is None


def test_of_other_candidates_is_chosen_anew() -> None:
    turns = Turns()
    turns.keep(RunId(1), [B, A], 0)
    assert turns.take(RunId(1), JOB, (A,), 1) is None
    assert turns.take(RunId(1), JOB, hosts(2), 1) is None
    assert turns.take(RunId(1), JOB, (A, *hosts(1), B), 1) is None


def test_the_turn_of_a_discarded_run_is_that_of_the_next_one_of_its_job_alone() -> None:
    turns = Turns()
    turns.pass_on(JOB, [B, A], 0)
    assert turns.take(RunId(2), JobId(8), (A, B), 1) is None
    assert turns.take(RunId(3), JOB, (A, B), 1) == [B, A]
    assert turns.take(RunId(4), JOB, (A, B), 1) is None


def test_what_is_kept_is_bounded_and_forgotten_after_a_day() -> None:
    turns = Turns()
    for run_id in range(2000):
        turns.keep(RunId(run_id), hosts(200), 0)
    assert turns.take(RunId(0), JOB, hosts(200), 0) is None
    assert turns.take(RunId(1999), JOB, hosts(200), 0) == hosts(200)
    turns.pass_on(JOB, [B, A], 0)
    turns.forget_unused(DAY_MS + 1)
    assert turns.take(RunId(1999), JOB, hosts(200), DAY_MS + 1) is None
    assert turns.take(RunId(1), JOB, (A, B), DAY_MS + 1) is None
