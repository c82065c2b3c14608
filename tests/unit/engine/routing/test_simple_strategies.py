import random
from collections import Counter

import pytest

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.policies import RouteStrategy
from jobwheel.admin.engine.routing import Routers, UnknownStrategyError
from tests.support.engine_parts import candidates_of

ADDRESSES = candidates_of("http://a:1/", "http://b:1/", "http://c:1/")
JOB = JobId(7)
DAY_MS = 24 * 3600 * 1000


def routers(seed: int = 1) -> Routers:
    return Routers(random.Random(seed))


def test_first_and_last_in_the_order_of_the_list() -> None:
    assert list(routers().order("FIRST", JOB, ADDRESSES, 0)) == ADDRESSES
    assert list(routers().order("LAST", JOB, ADDRESSES, 0)) == ADDRESSES[::-1]


@pytest.mark.parametrize("strategy", RouteStrategy)
def test_without_candidates_there_is_no_choice(strategy: str) -> None:
    assert list(routers().order(strategy, JOB, [], 0)) == []


@pytest.mark.parametrize("strategy", ["FAILOVER", "BUSYOVER", "SHARDING_BROADCAST"])
def test_what_the_router_does_not_choose_is_in_the_order_of_the_list(strategy: str) -> None:
    assert list(routers().order(strategy, JOB, ADDRESSES[::-1], 0)) == ADDRESSES[::-1]


def test_round_lands_on_each_as_often() -> None:
    made = routers()
    chosen = [made.order("ROUND", JOB, ADDRESSES, 0)[0] for _ in range(300)]
    assert Counter(chosen) == dict.fromkeys(ADDRESSES, 100)
    assert all(chosen[n] != chosen[n + 1] for n in range(299))


def test_round_goes_on_with_the_next_as_the_fallback() -> None:
    order = list(routers().order("ROUND", JOB, ADDRESSES, 0))
    start = ADDRESSES.index(order[0])
    assert order == [*ADDRESSES[start:], *ADDRESSES[:start]]


def test_round_starts_many_jobs_at_every_address() -> None:
    made = routers()
    starts = Counter(made.order("ROUND", JobId(n), ADDRESSES, 0)[0] for n in range(3000))
    assert all(900 < starts[address] < 1100 for address in ADDRESSES)


def test_round_counts_each_job_by_itself() -> None:
    made = routers()
    first = made.order("ROUND", JOB, ADDRESSES, 0)[0]
    for _ in range(5):
        made.order("ROUND", JobId(8), ADDRESSES, 0)
    assert made.order("ROUND", JOB, ADDRESSES, 0)[0] == ADDRESSES[(ADDRESSES.index(first) + 1) % 3]


def test_round_copes_with_addresses_that_come_and_go() -> None:
    made = routers()
    for count in (3, 1, 2, 3, 1):
        order = list(made.order("ROUND", JOB, ADDRESSES[:count], 0))
        assert sorted(order, key=ADDRESSES.index) == ADDRESSES[:count]


def test_random_is_uniform_and_so_is_its_fallback() -> None:
    made = routers()
    orders = [tuple(each.address for each in made.order("RANDOM", JOB, ADDRESSES, 0)) for _ in range(6000)]
    counts = Counter(orders)
    assert len(counts) == 6
    assert all(850 < count < 1150 for count in counts.values())


@pytest.mark.parametrize("strategy", ["", "first", "HASH", "NONSENSE"])
def test_an_unknown_strategy_is_named_with_the_known_ones(strategy: str) -> None:
    with pytest.raises(UnknownStrategyError, match=f"{strategy!r} is not one of {', '.join(RouteStrategy)}$"):
        routers().order(strategy, JOB, ADDRESSES, 0)
