from collections.abc import Sequence

import pytest

from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.address_slots import AddressSlots
from tests.support.engine_parts import NOW_MS, pending_run

DEAD = "http://10.0.0.66:9999/"
LIVE = "http://10.0.0.7:9999/"


def ids(runs: Sequence[PendingRun]) -> list[int]:
    return [run.id for run in runs]


def take_all(slots: AddressSlots, address: str, count: int, first: int = 0) -> list[int]:
    """Try to take a slot for so many runs, and park those without one; the ones that got one."""
    taken = []
    for run in [pending_run(first + n) for n in range(count)]:
        if slots.take(address, run):
            taken.append(int(run.id))
        else:
            slots.park(address, run)
    return taken


def test_a_run_beyond_the_limit_is_parked_and_each_landing_calls_one() -> None:
    slots = AddressSlots(1, 1000)
    flying = take_all(slots, DEAD, 20)
    assert flying == list(range(len(flying)))
    assert slots.parked == 20 - len(flying)
    first = len(flying)
    assert ids(slots.give_back(DEAD, 1, 0.0)) == [first]
    assert slots.take(DEAD, pending_run(first))
    assert ids(slots.give_back(DEAD, 1, 0.0)) == [first + 1]
    assert slots.parked == 20 - len(flying) - 2


def test_parked_runs_are_called_a_good_number_at_once() -> None:
    slots = AddressSlots(32, 1000)
    flying = take_all(slots, LIVE, 500)
    share = len(flying) // 4
    assert [len(slots.give_back(LIVE, 1, 0.0)) for _ in range(share)] == [*([0] * (share - 1)), share]


def test_as_many_may_be_under_way_as_land_in_a_tenth_of_a_second() -> None:
    slots = AddressSlots(4, 100_000)
    under_way = len([n for n in range(12) if slots.take(LIVE, pending_run(n))])
    assert not slots.take(LIVE, pending_run(99))
    for hundredth in range(100):
        # All but one: an address with nothing under way is forgotten.
        slots.give_back(LIVE, under_way - 1, hundredth / 100)
        under_way = 1 + len([n for n in range(11) if slots.take(LIVE, pending_run(n))])
    assert len([n for n in range(500) if slots.take(LIVE, pending_run(n))]) > 50
    slots.slow_down(LIVE)
    assert not slots.take(LIVE, pending_run(99))


@pytest.mark.parametrize(("take_off_s", "many"), [(0.0, 1), (0.05, 1), (0.1, 2), (0.2, 4), (9.0, 5)])
def test_the_longer_take_offs_last_the_more_may_be_under_way(take_off_s: float, many: int) -> None:
    slots = AddressSlots(4, 100_000)
    take_all(slots, LIVE, 12)
    for hundredth in range(30):
        slots.give_back(LIVE, 11, hundredth / 100)
        take_all(slots, LIVE, 11)
    for _ in range(30):
        slots.note_take_off(take_off_s)
    under_way = 12 + len([n for n in range(900) if slots.take(LIVE, pending_run(n))])
    # Ten times eleven land within a tenth of a second.
    assert under_way in (110 * many - 1, 110 * many)


def test_a_called_run_has_the_slot_that_it_was_called_for() -> None:
    slots = AddressSlots(1, 1000)
    flying = take_all(slots, DEAD, 10)
    (called,) = slots.give_back(DEAD, 1, 0.0)
    assert not slots.take(DEAD, pending_run(99))
    assert slots.give_back(DEAD, 0, 0.0) == ()
    assert slots.take(DEAD, called)
    assert (slots.parked, len(flying)) == (6, 3)


def test_what_a_called_run_does_not_take_is_the_next_ones() -> None:
    slots = AddressSlots(1, 1000)
    flying = take_all(slots, DEAD, 10)
    called = [run for _ in flying for run in slots.give_back(DEAD, 1, 0.0)]
    assert ids(called) == [3, 4, 5]
    assert not slots.stranded()
    slots.release_called(called)
    assert ids(slots.stranded()) == [6, 7, 8]


def test_parked_runs_of_an_address_that_stays_empty_are_called_in_their_turn() -> None:
    slots = AddressSlots(1, 1000)
    flying = take_all(slots, DEAD, 10)
    seen = [run for _ in flying for run in slots.give_back(DEAD, 1, 0.0)]
    slots.release_called(seen)
    while turn := slots.stranded():
        slots.release_called(turn)
        seen += turn
    assert ids(seen) == list(range(len(flying), 10))
    assert slots.parked == 0


def test_one_dead_address_takes_no_slot_of_another() -> None:
    slots = AddressSlots(2, 1000)
    take_all(slots, DEAD, 100)
    assert take_all(slots, LIVE, 2) == [0, 1]
    assert not slots.give_back(LIVE, 2, 0.0)


def test_a_broadcast_takes_its_slots_in_any_case() -> None:
    slots = AddressSlots(1, 1000)
    flying = take_all(slots, LIVE, 10)
    slots.take_more(LIVE)
    assert slots.give_back(LIVE, 1, 0.0) == ()
    assert len(slots.give_back(LIVE, len(flying), 0.0)) > 1


def test_parked_runs_are_bounded_and_an_address_without_them_has_its_share() -> None:
    slots = AddressSlots(2, 10)
    held = take_all(slots, DEAD, 6)
    assert len(held) == 6
    parked = 0
    while slots.has_place(DEAD):
        assert take_all(slots, DEAD, 1, first=100 + parked) == []
        parked += 1
    assert (parked, slots.parked) == (10, 10)
    assert not slots.is_relieved(DEAD)
    assert slots.has_place(LIVE)
    for n in range(8):
        assert slots.has_place(LIVE)
        take_all(slots, LIVE, 1, first=n)
    assert not slots.has_place(LIVE)
    for _ in range(5):
        slots.release_called(slots.give_back(DEAD, 1, 0.0))
    assert slots.is_relieved(DEAD)


def test_nothing_is_remembered_of_an_address_without_sends() -> None:
    slots = AddressSlots(1, 1000)
    for _ in range(3):
        for _ in take_all(slots, DEAD, 3):
            slots.give_back(DEAD, 1, 0.0)
    assert (slots._addresses, slots._called) == ({}, {})


def test_a_called_run_that_goes_elsewhere_leaves_its_slot_to_the_next() -> None:
    slots = AddressSlots(1, 1000)
    flying = take_all(slots, DEAD, 10)
    seen = 0
    turn = [run for _ in flying for run in slots.give_back(DEAD, 1, 0.0)]
    while turn:
        for run in turn:
            assert slots.take(LIVE, run)
            slots.give_back(LIVE, 1, 0.0)
        slots.release_called(turn)
        seen += len(turn)
        turn = list(slots.stranded())
    assert (seen, slots.parked) == (10 - len(flying), 0)
    assert slots.take(DEAD, pending_run(99))


def test_a_new_run_does_not_overtake_those_that_are_parked() -> None:
    slots = AddressSlots(32, 1000)
    flying = take_all(slots, LIVE, 200)
    assert slots.give_back(LIVE, 1, 0.0) == ()
    assert not slots.take(LIVE, pending_run(999))
    assert slots.parked == 200 - len(flying)


def test_an_address_with_a_great_many_runs_on_their_way_takes_no_further_broadcast() -> None:
    slots = AddressSlots(1, 10_000)
    taken = 0
    while not slots.is_overbooked(DEAD, NOW_MS):
        slots.take_more(DEAD)
        taken += 1
    assert 1000 <= taken <= 1100
    assert not slots.is_overbooked(LIVE, NOW_MS)
    assert not slots.is_relieved(DEAD)
    slots.give_back(DEAD, taken - 100, 0.0)
    assert slots.is_relieved(DEAD)


def test_a_broadcast_does_not_overtake_runs_that_are_parked() -> None:
    slots = AddressSlots(1, 1000)
    flying = take_all(slots, LIVE, 10)
    # A broadcast that came due before all of those that are parked goes; no younger one does.
    assert not slots.is_overbooked(LIVE, NOW_MS - 1)
    assert slots.is_overbooked(LIVE, NOW_MS)
    assert not slots.takes_broadcasts(LIVE, NOW_MS + 1000)
    for _ in flying:
        for run in slots.give_back(LIVE, 1, 0.0):
            assert slots.take(LIVE, run)
    assert slots.is_overbooked(LIVE, NOW_MS)
    while slots.parked:
        for run in slots.give_back(LIVE, 1, 0.0):
            assert slots.take(LIVE, run)
    assert slots.takes_broadcasts(LIVE, NOW_MS)


def test_nothing_is_remembered_of_an_address_that_called_runs_left() -> None:
    slots = AddressSlots(1, 1000)
    for _ in take_all(slots, DEAD, 4):
        for run in slots.give_back(DEAD, 1, 0.0):
            assert slots.take(LIVE, run)
            slots.give_back(LIVE, 1, 0.0)
    assert (slots._addresses, slots._called) == ({}, {})


def test_many_addresses_that_hang_take_a_bounded_number_of_runs_together() -> None:
    slots = AddressSlots(2, 5000)
    hosts = [f"http://host-{n}:9999/" for n in range(1000)]
    broadcasts = 0
    while not any(slots.is_overbooked(host, NOW_MS) for host in hosts):
        broadcasts += 1
        for host in hosts:
            slots.take_more(host)
    assert broadcasts <= 10
    for host in hosts:
        slots.give_back(host, broadcasts, 0.0)
    assert all(slots.is_relieved(host) for host in hosts)
    assert slots._addresses == {}
