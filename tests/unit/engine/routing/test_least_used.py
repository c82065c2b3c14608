"""LEAST_FREQUENTLY_USED and LEAST_RECENTLY_USED."""

import random
from collections import Counter

import pytest

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.routing import Router
from jobwheel.admin.engine.routing.least_frequently_used import LeastFrequentlyUsed
from jobwheel.admin.engine.routing.least_recently_used import LeastRecentlyUsed
from tests.support.engine_parts import hosts

JOB = JobId(7)
BOTH = pytest.mark.parametrize("kind", [LeastFrequentlyUsed, LeastRecentlyUsed])


def chosen(router: Router, candidates: list[Candidate], runs: int, job_id: JobId = JOB) -> list[str]:
    return [router.order(job_id, candidates, 0)[0].address for _ in range(runs)]


@BOTH
@pytest.mark.parametrize("seed", range(20))
def test_runs_land_on_each_as_often(kind: type[LeastFrequentlyUsed | LeastRecentlyUsed], seed: int) -> None:
    counts = Counter(chosen(kind(random.Random(seed)), hosts(3), 300))
    assert all(98 <= count <= 102 for count in counts.values())
    assert len(counts) == 3


@BOTH
def test_many_jobs_begin_at_every_address(kind: type[LeastFrequentlyUsed | LeastRecentlyUsed]) -> None:
    router, candidates = kind(random.Random(1)), hosts(3)
    starts = Counter(chosen(router, candidates, 1, JobId(n))[0] for n in range(3000))
    assert all(starts[each.address] > 500 for each in candidates)


@BOTH
def test_each_job_has_uses_of_its_own(kind: type[LeastFrequentlyUsed | LeastRecentlyUsed]) -> None:
    alone, beside = kind(random.Random(1)), kind(random.Random(1))
    first = chosen(alone, hosts(4), 1) + chosen(alone, hosts(4), 20)
    second = chosen(beside, hosts(4), 1)
    beside.order(JobId(8), hosts(4), 0)
    assert first == second + chosen(beside, hosts(4), 20)


@BOTH
def test_a_new_address_gets_its_share_and_no_more(kind: type[LeastFrequentlyUsed | LeastRecentlyUsed]) -> None:
    router = kind(random.Random(1))
    chosen(router, hosts(3), 3000)
    counts = Counter(chosen(router, hosts(4), 400))
    assert all(95 <= counts[each.address] <= 105 for each in hosts(4))


def test_the_least_frequently_used_comes_first_and_the_others_by_their_counts() -> None:
    router = LeastFrequentlyUsed(random.Random(1))
    router._counts.put(JOB, {each.address: count for each, count in zip(hosts(3), (2, 0, 1), strict=True)}, 3, 0)
    first, second, third = hosts(3)
    assert router.order(JOB, hosts(3), 0) == [second, third, first]


def test_counts_stay_relative_and_those_of_addresses_that_left_are_dropped() -> None:
    router = LeastFrequentlyUsed(random.Random(1))
    chosen(router, hosts(5), 5000)
    counts = router._counts.get(JOB, 0)
    assert counts is not None
    assert max(counts.values()) <= 2
    router.order(JOB, hosts(2), 0)
    assert set(router._counts.get(JOB, 0) or ()) == {each.address for each in hosts(2)}


def test_the_least_recently_used_comes_first_and_the_others_by_their_last_use() -> None:
    router = LeastRecentlyUsed(random.Random(1))
    before = [router.order(JOB, hosts(3), 0)[0] for _ in range(3)]
    assert router.order(JOB, hosts(3), 0) == before
    assert router.order(JOB, hosts(3), 0) == [*before[1:], before[0]]


def test_an_address_that_was_never_used_is_the_next() -> None:
    router = LeastRecentlyUsed(random.Random(1))
    chosen(router, hosts(3), 7)
    assert router.order(JOB, hosts(4), 0)[0] == hosts(4)[3]


def test_uses_of_addresses_that_left_are_dropped() -> None:
    router = LeastRecentlyUsed(random.Random(1))
    chosen(router, hosts(3), 3)
    router.order(JOB, hosts(2), 0)
    assert set(router._uses.get(JOB, 0) or ()) == {each.address for each in hosts(2)}
