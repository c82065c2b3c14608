"""Children that a handler forks get whatever is open here, and may outlive this process."""

import contextlib
import os
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

Owner = TypeVar("Owner")


class _Inherited:
    """What children are to close. Of the process, as what the system calls in them is."""

    owners: ClassVar[weakref.WeakKeyDictionary[Any, Callable[[Any], object]]] = weakref.WeakKeyDictionary()
    is_known: ClassVar[bool] = False

    @classmethod
    def close(cls) -> None:
        for owner, close in list(cls.owners.items()):
            with contextlib.suppress(OSError):
                close(owner)


def close_in_children(owner: Owner, close: Callable[[Owner], object]) -> None:
    """Call `close` with `owner`, as long as there is one, in each child that is forked from now on.

    A program that is started instead has nothing of ours open.

    Args:
        owner: what has something open.
        close: closes it. It may be called again, and at any moment of what other threads did with it.
    """
    _Inherited.owners[owner] = close
    if not _Inherited.is_known:
        _Inherited.is_known = True
        os.register_at_fork(after_in_child=_Inherited.close)
