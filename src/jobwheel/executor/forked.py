"""Children that a handler forks get whatever is open here, and may outlive this process."""

import os
import weakref
from collections.abc import Callable
from typing import TypeVar

Owner = TypeVar("Owner")


def close_in_children(owner: Owner, close: Callable[[Owner], object]) -> None:
    """Call `close` with `owner`, as long as there is one, in each child that is forked from now on.

    A program that is started instead has nothing of ours open.
    """
    reference = weakref.ref(owner)

    def close_if_there() -> None:
        left = reference()
        if left is not None:
            close(left)

    os.register_at_fork(after_in_child=close_if_there)
