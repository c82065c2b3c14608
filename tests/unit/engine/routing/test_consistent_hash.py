from collections import Counter
from pathlib import Path

import pytest

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.routing.consistent_hash import ConsistentHash, Ring, hash_of
from tests.support.engine_parts import candidates_of, hosts

VECTORS = [
    line.split("\t")
    for line in (Path(__file__).parents[3] / "vectors" / "consistent_hash.tsv").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def test_the_vectors_are_there() -> None:
    assert len(VECTORS) == 60


@pytest.mark.parametrize(("job_id", "addresses", "chosen"), VECTORS)
def test_a_job_has_the_address_that_the_vectors_give_it(job_id: str, addresses: str, chosen: str) -> None:
    order = ConsistentHash().order(JobId(int(job_id)), candidates_of(*addresses.split(",")), 0)
    assert order[0].address == chosen


def test_a_key_is_hashed_to_the_first_bytes_little_endian() -> None:
    # The MD5 of nothing begins with d4 1d 8c d9.
    assert hash_of("") == 0xD98C1DD4


def test_what_is_remembered_changes_no_answer() -> None:
    router = ConsistentHash()
    for job_id in (JobId(1), JobId(2), JobId(1)):
        for candidates in (hosts(3), hosts(5), hosts(3)):
            assert router.order(job_id, candidates, 0) == ConsistentHash().order(job_id, candidates, 0)


def test_a_ring_is_made_once_for_all_jobs_of_a_list() -> None:
    router = ConsistentHash()
    for n in range(100):
        router.order(JobId(n), hosts(3), 0)
    assert (len(router._rings), len(router._orders)) == (1, 100)


def test_the_next_address_is_the_one_that_the_job_gets_when_the_first_is_gone() -> None:
    router, candidates = ConsistentHash(), hosts(7)
    for n in range(200):
        order = router.order(JobId(n), candidates, 0)
        without = [each for each in candidates if each is not order[0]]
        assert router.order(JobId(n), without, 0) == order[1:]


def test_jobs_are_spread_over_the_addresses() -> None:
    router, candidates = ConsistentHash(), hosts(5)
    chosen = Counter(router.order(JobId(n), candidates, 0)[0].address for n in range(5000))
    assert all(700 < chosen[each.address] < 1300 for each in candidates)


def test_a_key_in_the_very_place_of_a_node_has_its_address() -> None:
    ring = Ring([each.address for each in hosts(3)])
    assert [ring.order(f"SHARD-{each.address}-NODE-{n}")[0] for each in hosts(3) for n in (0, 99)] == [0, 0, 1, 1, 2, 2]


def test_an_address_without_a_place_on_the_ring_comes_last() -> None:
    # Of two equal addresses the later one has all the nodes.
    assert Ring(["http://a:1/", "http://a:1/"]).order("7") == (1, 0)


def test_memory_is_bounded_when_addresses_come_and_go() -> None:
    router = ConsistentHash()
    router._rings._most = 600
    router._orders._most = 30
    for n in range(20):
        router.order(JobId(7), candidates_of("http://a:1/", f"http://b:{n + 1}/"), n)
    assert (len(router._rings), len(router._orders)) == (3, 7)
