import random
from collections import Counter
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.policies import RouteStrategy
from jobwheel.admin.engine.routing import Routers
from tests.support.engine_parts import hosts

_JOB: Final = JobId(7)
_COUNTS = st.integers(1, 12)
_SEEDS = st.integers(0, 2**32)
_IN_TURN = st.sampled_from(["ROUND", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED"])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(RouteStrategy), st.lists(st.sets(_COUNTS, min_size=1), min_size=1, max_size=30), _SEEDS)
def test_every_strategy_orders_each_candidate_once(strategy: str, lists: list[set[int]], seed: int) -> None:
    routers = Routers(random.Random(seed))
    for numbers in lists:
        candidates = [each for number, each in enumerate(hosts(13)) if number in numbers]
        order = routers.order(strategy, _JOB, candidates, 0)
        assert sorted(order, key=candidates.index) == candidates


@settings(max_examples=50, deadline=None)
@given(_COUNTS, st.integers(1, 20), _SEEDS)
def test_whole_rounds_land_on_each_address_equally(count: int, rounds: int, seed: int) -> None:
    routers = Routers(random.Random(seed))
    candidates = hosts(count)
    chosen = Counter(routers.order("ROUND", _JOB, candidates, 0)[0] for _ in range(count * rounds))
    assert chosen == dict.fromkeys(candidates, rounds)


@settings(max_examples=150, deadline=None)
@given(_IN_TURN, _SEEDS, st.floats(0, 1))
def test_two_admins_balance_the_runs_of_a_job_over_three_executors(strategy: str, seed: int, share: float) -> None:
    source = random.Random(seed)
    admins = [Routers(random.Random(source.random())) for _ in range(2)]
    candidates = hosts(3)
    runs = (admins[source.random() < share] for _ in range(300))
    chosen = Counter(admin.order(strategy, _JOB, candidates, 0)[0] for admin in runs)
    assert all(95 <= chosen[each] <= 105 for each in candidates)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED"]), st.integers(2, 8), st.integers(0, 500), _SEEDS
)
def test_an_address_that_comes_late_is_not_flooded(strategy: str, count: int, before: int, seed: int) -> None:
    routers = Routers(random.Random(seed))
    for _ in range(before):
        routers.order(strategy, _JOB, hosts(count), 0)
    late = hosts(count + 1)
    chosen = Counter(routers.order(strategy, _JOB, late, 0)[0] for _ in range(10 * len(late)))
    assert chosen[late[-1]] <= 10 + len(late)
    assert min(chosen[each] for each in late) >= 1


@settings(max_examples=100, deadline=None)
@given(st.lists(_COUNTS, min_size=1, max_size=20), st.integers(1, 2**31))
def test_consistent_hash_moves_a_job_only_to_an_address_that_came(counts: list[int], job_id: int) -> None:
    routers = Routers()
    before = None
    for count in counts:
        candidates = hosts(count)
        chosen = routers.order("CONSISTENT_HASH", JobId(job_id), candidates, 0)[0]
        if before is not None and before[0] in candidates:
            assert chosen == before[0] or chosen not in before[1]
        before = chosen, candidates
