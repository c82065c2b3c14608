"""The table of strategies: what holds for each of them."""

import random
from typing import Any

import pytest

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.policies import RouteStrategy
from jobwheel.admin.engine.routing import Routers, UnknownStrategyError
from tests.support.engine_parts import hosts

DAY_MS = 24 * 3600 * 1000


def held(routers: Routers, strategy: str) -> int:
    """How much the strategy remembers."""
    parts: dict[str, Any] = getattr(routers._routers[strategy], "__dict__", {})
    return sum(len(part) for part in parts.values() if hasattr(part, "forget_unused"))


@pytest.mark.parametrize("strategy", RouteStrategy)
def test_every_name_is_known_and_forgets_what_was_not_used_for_a_day(strategy: str) -> None:
    routers = Routers(random.Random(1))
    routers.order(strategy, JobId(7), hosts(3), 0)
    before = held(routers, strategy)
    routers.forget_unused(DAY_MS)
    assert held(routers, strategy) == before
    routers.forget_unused(DAY_MS + 1)
    assert held(routers, strategy) == 0


@pytest.mark.parametrize("strategy", ["ROUND", "CONSISTENT_HASH", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED"])
def test_these_remember_something(strategy: str) -> None:
    routers = Routers(random.Random(1))
    routers.order(strategy, JobId(7), hosts(3), 0)
    assert held(routers, strategy) > 0


def test_two_strategies_ask_before_they_choose() -> None:
    routers = Routers()
    assert [strategy for strategy in RouteStrategy if routers.asks(strategy)] == ["FAILOVER", "BUSYOVER"]
    assert not routers.asks("NONSENSE")


async def test_who_does_not_ask_cannot_choose_by_asking() -> None:
    with pytest.raises(UnknownStrategyError, match="'ROUND' is not one of FAILOVER, BUSYOVER"):
        await Routers().choose("ROUND", JobId(7), hosts(3), NobodyToAsk())


class NobodyToAsk:
    is_late = False

    async def beat(self, candidate: object) -> Any:
        raise AssertionError(candidate)

    async def idle_beat(self, job_id: JobId, candidate: object) -> Any:
        raise AssertionError(candidate)
