"""Asking an executor whether it can be reached from here."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.engine.executor_answers import Answer, AnswerKind
from jobwheel.admin.services.groups import Groups
from jobwheel.admin.services.live_addresses import find_address
from jobwheel.kernel.clock import Clock


class Reach(StrEnum):
    """What an executor says to a beat. `NO_ANSWER`: something is there, which gives none that could be read."""

    ALIVE = "alive"
    REFUSED = "refused"
    NO_ANSWER = "no_answer"
    UNREACHABLE = "unreachable"


_REACHES: Final[Mapping[AnswerKind, Reach]] = {
    AnswerKind.ACCEPTED: Reach.ALIVE,
    AnswerKind.STOPPING: Reach.REFUSED,
    AnswerKind.REJECTED: Reach.REFUSED,
    AnswerKind.UNCONFIRMED: Reach.NO_ANSWER,
    AnswerKind.UNREACHABLE: Reach.UNREACHABLE,
}


class Beating(Protocol):
    """Asks executors whether they are alive."""

    async def beat(self, address: str, app_name: str) -> Answer:
        """What the executor at an address answers. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of it, from the node that was asked; `message` is empty of an executor that is alive."""

    address: str
    reach: Reach
    message: str
    took_ms: int


class Probes:
    """The use case of trying an executor: that it registers here does not say that it is reached from here."""

    def __init__(self, groups: Groups, executors: Beating, clock: Clock) -> None:
        self._groups = groups
        self._executors = executors
        self._clock = clock

    async def probe(self, group_id: GroupId, address: str) -> Probe:
        """Ask the executor at one of a group's live addresses; nobody else is asked, and sent the token.

        Raises:
            NotFoundError: there is no such group.
            InvalidFieldError: none of its executors is at this address.
        """
        view = await self._groups.get(group_id)
        there = find_address(view.group, view.live_addresses, address)
        began_s = self._clock.monotonic()
        answer = await self._executors.beat(there.address, view.group.app_name)
        took_ms = round((self._clock.monotonic() - began_s) * 1000)
        reach = _REACHES[answer.kind]
        return Probe(there.address, reach, "" if reach is Reach.ALIVE else answer.message, took_ms)
