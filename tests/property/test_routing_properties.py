import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.routing import Routers

_STRATEGIES = st.sampled_from(["FIRST", "LAST", "ROUND", "RANDOM"])
_COUNTS = st.integers(1, 12)


@settings(max_examples=100, deadline=None)
@given(_STRATEGIES, st.lists(_COUNTS, min_size=1, max_size=30), st.integers(0, 2**32))
def test_every_strategy_orders_each_candidate_once(strategy: str, counts: list[int], seed: int) -> None:
    routers = Routers(random.Random(seed))
    for count in counts:
        candidates = [f"http://host-{n}/" for n in range(count)]
        order = routers.order(strategy, JobId(7), candidates, 0)
        assert sorted(order) == sorted(candidates)


@settings(max_examples=50, deadline=None)
@given(_COUNTS, st.integers(1, 20), st.integers(0, 2**32))
def test_whole_rounds_land_on_each_address_equally(count: int, rounds: int, seed: int) -> None:
    routers = Routers(random.Random(seed))
    candidates = [f"http://host-{n}/" for n in range(count)]
    chosen = Counter(routers.order("ROUND", JobId(7), candidates, 0)[0] for _ in range(count * rounds))
    assert chosen == dict.fromkeys(candidates, rounds)
