from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobwheel.kernel.backoff import Backoff

FIRST_S = st.floats(0.001, 10)
MOST_S = st.floats(10, 10_000)
FAILURES = st.integers(1, 100_000)


@given(FIRST_S, MOST_S, st.floats(0, 1), FAILURES, st.integers())
def test_a_delay_stays_between_its_bounds(
    first_s: float, most_s: float, jitter: float, failures: int, seed: int
) -> None:
    delay_s = Backoff(first_s, most_s, jitter, Random(seed)).delay_s(failures)
    full_s = Backoff(first_s, most_s, 0).delay_s(failures)
    assert full_s * (1 - jitter) <= delay_s <= full_s <= most_s


@given(FIRST_S, MOST_S, FAILURES)
def test_without_jitter_it_doubles_until_the_most(first_s: float, most_s: float, failures: int) -> None:
    backoff = Backoff(first_s, most_s, 0)
    assert backoff.delay_s(1) == first_s
    assert backoff.delay_s(failures + 1) == min(most_s, 2 * backoff.delay_s(failures))


def test_jitter_spreads_the_delays() -> None:
    backoff = Backoff(1, 1, 0.5, Random(7))
    delays = {backoff.delay_s(1) for _ in range(100)}
    assert len(delays) > 90
    assert max(delays) - min(delays) > 0.3


@pytest.mark.parametrize("failures", [0, -1])
def test_failures_count_from_one(failures: int) -> None:
    with pytest.raises(ValueError, match="counts from 1"):
        Backoff().delay_s(failures)
