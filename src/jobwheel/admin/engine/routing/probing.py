"""Asking one address after the other, for the strategies that ask before they choose."""

from collections.abc import Awaitable, Callable, Sequence

from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.executor_answers import Answer, AnswerKind
from jobwheel.admin.engine.routing.base import Asker, Chosen


async def first_yes(
    candidates: Sequence[Candidate], asker: Asker, ask: Callable[[Candidate], Awaitable[Answer]]
) -> Chosen:
    """The first candidate that says yes, with those after it, which were not asked; no candidate if none does.

    Nor is there one if it has become late by then: a thousand addresses of which none answers would take an hour.
    """
    asked: list[tuple[str, Answer]] = []
    for at, candidate in enumerate(candidates):
        if asker.is_late:
            return Chosen((), asked, len(candidates) - at)
        answer = await ask(candidate)
        asked.append((candidate.address, answer))
        if answer.kind is AnswerKind.ACCEPTED:
            return Chosen(candidates[at:], asked)
    return Chosen((), asked)
