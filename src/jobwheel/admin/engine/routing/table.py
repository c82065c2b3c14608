"""The table of strategies."""

import random
from collections.abc import Sequence
from typing import Any

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.policies import RouteStrategy
from jobwheel.admin.engine.routing.base import Candidate, Router, UnknownStrategyError
from jobwheel.admin.engine.routing.first import First
from jobwheel.admin.engine.routing.last import Last
from jobwheel.admin.engine.routing.random_choice import RandomChoice
from jobwheel.admin.engine.routing.round import Round


class Routers:
    """One router for each strategy, by its name."""

    def __init__(self, source: random.Random | None = None) -> None:
        source = source or random.Random()  # noqa: S311 - spreads load, keeps no secret
        self._routers: dict[str, Router] = {
            RouteStrategy.FIRST: First(),
            RouteStrategy.LAST: Last(),
            RouteStrategy.ROUND: Round(source),
            RouteStrategy.RANDOM: RandomChoice(source),
        }

    def order(self, strategy: str, job_id: JobId, candidates: Sequence[Candidate], now_ms: int) -> Sequence[Candidate]:
        """The candidates in the order in which they are to be tried.

        Raises:
            UnknownStrategyError: the strategy does not exist, or not yet.
        """
        router = self._routers.get(strategy)
        if router is None:
            raise UnknownStrategyError(strategy, list(self._routers))
        return router.order(job_id, candidates, now_ms) if candidates else candidates

    def asks(self, strategy: str) -> bool:
        return False

    async def choose(self, strategy: str, job_id: JobId, candidates: Any, ask: Any) -> Any:
        raise NotImplementedError

    def forget_unused(self, now_ms: int) -> None:
        for router in self._routers.values():
            router.forget_unused(now_ms)
