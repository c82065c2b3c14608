"""Asking one address after the other, for the strategies that ask before they choose."""

from collections.abc import Awaitable, Callable, Sequence

from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.executor_client import Answer, AnswerKind
from jobwheel.admin.engine.routing.base import Chosen


async def first_yes(candidates: Sequence[Candidate], ask: Callable[[Candidate], Awaitable[Answer]]) -> Chosen:
    """The first candidate that says yes, with those after it, which were not asked; no candidate if none does."""
    asked: list[tuple[str, Answer]] = []
    for at, candidate in enumerate(candidates):
        answer = await ask(candidate)
        asked.append((candidate.address, answer))
        if answer.kind is AnswerKind.ACCEPTED:
            return Chosen(candidates[at:], asked)
    return Chosen((), asked)
