from jobwheel.executor.ledger import REMEMBER_S, RunLedger, RunState
from jobwheel.kernel.fake_clock import FakeClock

KEY = (7, 1000)


async def test_a_run_is_known_from_acceptance_to_ten_minutes_after_its_report() -> None:
    clock = FakeClock()
    ledger = RunLedger(clock)
    assert ledger.state(KEY) is None
    ledger.accept(KEY)
    await clock.advance(REMEMBER_S * 2)
    assert ledger.state(KEY) is RunState.OPEN
    ledger.finish(KEY)
    await clock.advance(REMEMBER_S * 2)
    assert ledger.state(KEY) is RunState.UNREPORTED
    ledger.report([KEY])
    await clock.advance(REMEMBER_S - 1)
    assert ledger.state(KEY) is RunState.REPORTED
    await clock.advance(1)
    assert ledger.state(KEY) is None
    assert ledger.remembered == 0


def test_the_same_id_at_another_time_is_another_run() -> None:
    ledger = RunLedger(FakeClock())
    ledger.accept(KEY)
    assert ledger.state((KEY[0], KEY[1] + 1000)) is None


def test_a_run_is_open_until_it_is_over_whatever_its_time_is_taken_for() -> None:
    ledger = RunLedger(FakeClock())
    ledger.accept(KEY)
    ledger.accept((KEY[0], 2000))
    ledger.finish(KEY)
    assert ledger.is_open(KEY[0])
    ledger.finish((KEY[0], 2000))
    assert not ledger.is_open(KEY[0])


def test_a_released_run_may_be_sent_again() -> None:
    ledger = RunLedger(FakeClock())
    ledger.accept(KEY)
    ledger.release(KEY)
    assert ledger.state(KEY) is None


def test_what_is_remembered_is_bounded_and_the_newest_stay() -> None:
    ledger = RunLedger(FakeClock(), most_remembered=10)
    keys = [(number, 0) for number in range(30)]
    for key in keys:
        ledger.accept(key)
        ledger.finish(key)
    assert ledger.remembered == 10
    ledger.report(keys)
    assert ledger.remembered == 10
    assert ledger.state(keys[-1]) is RunState.REPORTED
    assert ledger.state(keys[0]) is None


async def test_a_run_that_is_reported_before_it_is_known_as_over_is_forgotten_like_the_others() -> None:
    clock = FakeClock()
    ledger = RunLedger(clock)
    ledger.accept(KEY)
    ledger.report([KEY])
    assert ledger.state(KEY) is RunState.OPEN
    ledger.finish(KEY)
    assert ledger.state(KEY) is RunState.REPORTED
    await clock.advance(REMEMBER_S)
    assert ledger.state(KEY) is None
    assert ledger.remembered == 0
