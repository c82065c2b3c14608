"""Lists in sentences for people."""

from collections.abc import Sequence
from typing import Final

_MOST: Final = 20


def listed(names: Sequence[object]) -> str:
    """The names with commas between them; of many the first 20, and how many more there are."""
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(map(str, names[:_MOST])) + more
