"""Channels of alarms by their names: ids differ from one installation to the next."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from jobwheel.admin.domain.ids import ChannelId
from jobwheel.admin.services.errors import InvalidFieldError
from jobwheel.admin.store import Connection
from jobwheel.admin.store.alarm_channels import list_channels


class ChannelNames:
    """What the channels are called in one transaction; they are read when somebody asks first."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @cached_property
    def by_id(self) -> Mapping[ChannelId, str]:
        """The names of all channels that there are."""
        return {each.id: each.name for each in list_channels(self._connection)}

    def ids(self, names: Sequence[str], stored: tuple[ChannelId, ...]) -> tuple[ChannelId, ...]:
        """The ids of the channels that a document names for a job.

        They are those that are `stored` if these differ only by channels that are gone: no document can name such.

        Raises:
            InvalidFieldError: there is no channel of a name; names those that are there.
        """
        if not names and not stored:
            return ()
        ids = tuple(dict.fromkeys(self._id(at, name) for at, name in enumerate(names)))
        return stored if ids == tuple(each for each in stored if each in self.by_id) else ids

    def _id(self, at: int, name: str) -> ChannelId:
        for channel_id, known in self.by_id.items():
            if known == name:
                return channel_id
        there = ", ".join(map(repr, self.by_id.values())) or "none"
        field = f"alarm_settings.channels[{at}]"
        raise InvalidFieldError(field, f"there is no alarm channel {name[:100]!r}; there are {there}")
