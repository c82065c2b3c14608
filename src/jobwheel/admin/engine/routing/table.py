"""The table of strategies."""

import random
from collections.abc import Mapping, Sequence

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.policies import RouteStrategy
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.routing.base import Asker, Chosen, ProbingRouter, Router, UnknownStrategyError
from jobwheel.admin.engine.routing.busyover import Busyover
from jobwheel.admin.engine.routing.consistent_hash import ConsistentHash
from jobwheel.admin.engine.routing.failover import Failover
from jobwheel.admin.engine.routing.first import First
from jobwheel.admin.engine.routing.last import Last
from jobwheel.admin.engine.routing.least_frequently_used import LeastFrequentlyUsed
from jobwheel.admin.engine.routing.least_recently_used import LeastRecentlyUsed
from jobwheel.admin.engine.routing.random_choice import RandomChoice
from jobwheel.admin.engine.routing.round import Round
from jobwheel.admin.engine.routing.turns import Turns


class Routers:
    """One router for each strategy, by its name. All ten names are known here.

    SHARDING_BROADCAST leaves nothing to choose: every address gets its shard, which the launcher sees to.
    """

    def __init__(self, source: random.Random | None = None) -> None:
        source = source or random.Random()  # noqa: S311 - spreads load, keeps no secret
        as_listed = First()
        self.turns = Turns()
        """What was chosen for runs that had no room."""
        self._probing: Mapping[str, ProbingRouter] = {
            RouteStrategy.FAILOVER: Failover(),
            RouteStrategy.BUSYOVER: Busyover(),
        }
        self._routers: Mapping[str, Router] = {
            RouteStrategy.FIRST: as_listed,
            RouteStrategy.LAST: Last(),
            RouteStrategy.ROUND: Round(source),
            RouteStrategy.RANDOM: RandomChoice(source),
            RouteStrategy.CONSISTENT_HASH: ConsistentHash(),
            RouteStrategy.LEAST_FREQUENTLY_USED: LeastFrequentlyUsed(source),
            RouteStrategy.LEAST_RECENTLY_USED: LeastRecentlyUsed(source),
            RouteStrategy.FAILOVER: as_listed,
            RouteStrategy.BUSYOVER: as_listed,
            RouteStrategy.SHARDING_BROADCAST: as_listed,
        }

    def asks(self, strategy: str) -> bool:
        """Whether the strategy asks before it chooses: `choose` is for it, `order` for the others."""
        return strategy in self._probing

    def order(self, strategy: str, job_id: JobId, candidates: Sequence[Candidate], now_ms: int) -> Sequence[Candidate]:
        """The candidates in the order in which they are to be tried.

        For a strategy that asks it is the order in which it asks, for a broadcast that of the shards: the list's own.

        Raises:
            UnknownStrategyError: the strategy does not exist.
        """
        router = self._routers.get(strategy)
        if router is None:
            raise UnknownStrategyError(strategy, list(self._routers))
        return router.order(job_id, candidates, now_ms) if candidates else candidates

    async def choose(self, strategy: str, job_id: JobId, candidates: Sequence[Candidate], ask: Asker) -> Chosen:
        """Ask the candidates, one after the other, until one says yes.

        Raises:
            UnknownStrategyError: it is no strategy that asks.
        """
        router = self._probing.get(strategy)
        if router is None:
            raise UnknownStrategyError(strategy, list(self._probing))
        return await router.choose(job_id, candidates, ask)

    def forget_unused(self, now_ms: int) -> None:
        """Drop what is remembered of jobs that have not been routed for a day."""
        self.turns.forget_unused(now_ms)
        for router in self._routers.values():
            router.forget_unused(now_ms)
