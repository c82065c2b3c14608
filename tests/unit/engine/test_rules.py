import pytest

from jobwheel.admin.engine.rules import first_check_ms, next_check_ms

FAILED_MS = 1_795_746_600_250


def test_the_first_look() -> None:
    assert first_check_ms(FAILED_MS, resent=True) == FAILED_MS + 10_000
    assert first_check_ms(FAILED_MS, resent=False) == FAILED_MS + 60_000


def test_ours_is_sent_again_at_the_times_of_the_rule_and_looked_at_when_they_end() -> None:
    looks, now_ms = [], FAILED_MS
    for _ in range(8):
        now_ms = next_check_ms(FAILED_MS, now_ms, resent=True)
        looks.append((now_ms - FAILED_MS) // 1000)
    assert looks == [10, 30, 60, 120, 180, 240, 300, 310]


def test_after_an_adoption_the_same_times_count_from_there() -> None:
    assert next_check_ms(FAILED_MS, FAILED_MS, resent=True) == FAILED_MS + 10_000


def test_a_late_look_does_not_make_up_for_missed_ones() -> None:
    assert next_check_ms(FAILED_MS, FAILED_MS + 65_000, resent=True) == FAILED_MS + 120_000


@pytest.mark.parametrize("after_s", [60, 90, 615])
def test_others_are_asked_each_half_minute(after_s: int) -> None:
    now_ms = FAILED_MS + after_s * 1000
    assert next_check_ms(FAILED_MS, now_ms, resent=False) == now_ms + 30_000
