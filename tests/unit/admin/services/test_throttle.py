import pytest

from jobwheel.admin.services.errors import SignInThrottledError
from jobwheel.admin.services.throttle import PER_ADDRESS, PER_USER, SignInThrottle, ThrottleRule
from jobwheel.kernel.fake_clock import FakeClock


@pytest.mark.parametrize(
    ("failures", "delay_s"), [(0, 0), (2, 0), (3, 1), (4, 2), (5, 4), (8, 32), (9, 60), (1_000_000, 60)]
)
def test_delays_double_up_to_a_bound(failures: int, delay_s: float) -> None:
    assert ThrottleRule(free_failures=3).delay_s(failures) == delay_s


def test_a_refused_try_is_not_counted() -> None:
    throttle = SignInThrottle(FakeClock())
    for _ in range(PER_USER.free_failures):
        throttle.begin("ada", "192.0.2.1")
    for _ in range(50):
        with pytest.raises(SignInThrottledError) as caught:
            throttle.begin("ada", "192.0.2.2")
        assert caught.value.retry_after_s == 2


def test_one_name_and_one_address_do_not_hold_up_others() -> None:
    throttle = SignInThrottle(FakeClock())
    for number in range(PER_ADDRESS.free_failures):
        throttle.begin(f"user{number}", "192.0.2.1")
    with pytest.raises(SignInThrottledError):
        throttle.begin("ada", "192.0.2.1")
    throttle.begin("ada", "192.0.2.2")


def test_a_success_does_not_forgive_an_address_its_other_tries() -> None:
    throttle = SignInThrottle(FakeClock())
    for number in range(PER_ADDRESS.free_failures):
        throttle.begin(f"user{number}", "192.0.2.1")
    throttle.succeeded("user0", "192.0.2.1")
    throttle.begin("ada", "192.0.2.1")
    with pytest.raises(SignInThrottledError):
        throttle.begin("ada", "192.0.2.1")


def test_memory_is_bounded() -> None:
    clock = FakeClock()
    throttle = SignInThrottle(clock)
    for number in range(12_000):
        throttle.begin(f"name {number}" * 100, f"address {number}")
    assert len(throttle) <= 10_000
