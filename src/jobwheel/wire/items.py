"""Lists whose items are judged one by one."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec

from jobwheel.wire.errors import MalformedMessageError

Item = TypeVar("Item")

_MOST_REJECTED: Final = 10_000


def judge_each(items: Sequence[msgspec.Raw], read: Callable[[bytes], Item]) -> tuple[list[Item], list[str]]:
    """The good items, and what is wrong with the others, in words that name item and field.

    `read` raises MalformedMessageError for a bad one.

    Raises:
        MalformedMessageError: more than 10,000 items are bad.
    """
    good: list[Item] = []
    rejected: list[str] = []
    for index, item in enumerate(items):
        try:
            good.append(read(bytes(item)))
        except MalformedMessageError as error:
            rejected.append(f"item {index}: {error.message}")
            if len(rejected) > _MOST_REJECTED:
                # A bad one costs 20 µs, and 10 MiB hold millions: an admin that names them all stands still meanwhile.
                what = f"more than {_MOST_REJECTED} of its {len(items)} items are bad, the first as follows: "
                raise MalformedMessageError(what + rejected[0]) from error
    return good, rejected
