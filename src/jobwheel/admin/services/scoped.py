"""Use cases for somebody to whom some groups alone exist."""

from copy import copy
from typing import Self

from jobwheel.admin.domain.ids import GroupId


class Scoped:
    """A service whose changes can be held to some groups, in the transaction that makes them."""

    group_ids: frozenset[GroupId] | None = None
    """The groups that exist here; None: all."""

    def within(self, group_ids: frozenset[GroupId] | None) -> Self:
        """The same use cases for somebody whose groups these are (None: all): what is of others does not exist."""
        scoped = copy(self)
        scoped.group_ids = group_ids
        return scoped

    def hides(self, group_id: GroupId) -> bool:
        """Whether a group, and what is in it, does not exist here."""
        return self.group_ids is not None and group_id not in self.group_ids
