"""Histograms of fixed buckets: what they say of values that are known."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobwheel.admin.domain.histogram import BOUNDS, Histogram, bucket_of

VALUES = st.lists(st.integers(min_value=0, max_value=10**11), min_size=1, max_size=200)


def histogram(values: list[int]) -> Histogram:
    made = Histogram()
    for value in values:
        made.add(bucket_of(value), 1, value)
    return made


def test_the_bounds_grow_by_a_quarter_at_most() -> None:
    assert BOUNDS[:12] == (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
    assert all(upper - lower <= max(1, lower // 4) for lower, upper in pairwise(BOUNDS))


def test_a_value_is_in_the_bucket_that_it_is_below_the_bound_of() -> None:
    assert [bucket_of(value) for value in (-7, 0, 1, 7, 8, 9, 10, BOUNDS[-1])] == [0, 0, 1, 7, 8, 8, 9, len(BOUNDS)]


@given(VALUES, st.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_a_percentile_is_off_by_a_quarter_at_most(values: list[int], fraction: float) -> None:
    ordered = sorted(values)
    exact = ordered[max(1, -int(-fraction * len(values) // 1)) - 1]
    said = histogram(values).percentile_ms(fraction)
    assert said is not None
    if exact < BOUNDS[-1]:
        assert exact * 3 // 4 <= said <= exact + exact // 4


@given(VALUES, VALUES)
def test_the_parts_add_up_to_the_whole(some: list[int], others: list[int]) -> None:
    merged = histogram(some)
    merged.merge(histogram(others))
    assert merged == histogram(some + others)
    assert merged.count == len(some + others)
    assert Histogram.from_text(merged.to_text()) == merged


@pytest.mark.parametrize("fraction", [0.0, 0.5, 1.0])
def test_of_no_values_there_is_nothing_to_say(fraction: float) -> None:
    assert Histogram().percentile_ms(fraction) is None


def test_the_largest_value_is_exact() -> None:
    assert histogram([3, 1_234_567]).percentile_ms(1.0) == 1_234_567
    assert histogram([10**12]).percentile_ms(0.5) == 10**12
