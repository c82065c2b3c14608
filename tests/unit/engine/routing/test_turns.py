from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.engine.routing.turns import Turns
from tests.support.engine_parts import candidates_of, hosts

A, B = candidates_of("http://a:1/", "http://b:1/")
DAY_MS = 24 * 3600 * 1000


def test_a_run_has_the_order_that_was_chosen_of_the_same_candidates() -> None:
    turns = Turns()
    turns.keep(RunId(1), [B, A], 0)
    assert turns.get(RunId(1), (A, B), 1) == [B, A]
    assert turns.get(RunId(2), (A, B), 1) is None


def test_of_other_candidates_is_chosen_anew() -> None:
    turns = Turns()
    turns.keep(RunId(1), [B, A], 0)
    assert turns.get(RunId(1), (A,), 1) is None
    assert turns.get(RunId(1), hosts(2), 1) is None
    assert turns.get(RunId(1), (A, *hosts(1), B), 1) is None


def test_what_is_kept_is_bounded_and_forgotten_after_a_day() -> None:
    turns = Turns()
    for run_id in range(2000):
        turns.keep(RunId(run_id), hosts(200), 0)
    assert turns.get(RunId(0), hosts(200), 0) is None
    assert turns.get(RunId(1999), hosts(200), 0) == hosts(200)
    turns.forget_unused(DAY_MS + 1)
    assert turns.get(RunId(1999), hosts(200), DAY_MS + 1) is None
