"""Lists in sentences for people, and in columns."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

_MOST: Final = 20


def listed(names: Sequence[object]) -> str:
    """The names with commas between them; of many the first 20, and how many more there are."""
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(map(str, names[:_MOST])) + more


def as_many_as_fit(texts: Iterable[str], most_bytes: int, size: Callable[[str], int]) -> list[str]:
    """The first of the texts, as many as fit into so many bytes; `size` is what one takes, with what parts them."""
    fitting = []
    for text in texts:
        most_bytes -= size(text)
        if most_bytes < 0:
            break
        fitting.append(text)
    return fitting
