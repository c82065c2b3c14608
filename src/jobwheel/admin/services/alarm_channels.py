"""Making, changing, trying and deleting the channels of alarms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from jobwheel.admin.alarms.errors import ChannelError
from jobwheel.admin.alarms.settings import SettingRefusedError, masked, read_values
from jobwheel.admin.domain.alarm import AlarmChannel, AlarmFacts, AlarmKind
from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.ids import ChannelId
from jobwheel.admin.services.alarm_sending import AlarmFigures, Courier
from jobwheel.admin.services.errors import InvalidFieldError, NotFoundError, TakenError, VersionConflictError
from jobwheel.admin.services.texts import checked_text
from jobwheel.admin.store import Connection
from jobwheel.admin.store.alarm_channels import (
    delete_channel,
    get_channel,
    hold_channel_names,
    insert_channel,
    list_channels,
    update_channel,
)
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import insert_event
from jobwheel.kernel.clock import Clock

_MOST_NAME: Final = 64
_MOST_CHANNELS: Final = 200


@dataclass(frozen=True, slots=True)
class TestResult:
    """Whether a test message was taken, and what the far side said, or why nothing was sent."""

    __test__ = False

    sent: bool
    answer: str


class AlarmChannels:
    """The use cases of channels. `actor` is the name of who asks; `given` holds fields of the API with checked types.

    Channels come out of here with their secrets masked.
    """

    def __init__(
        self, database: Database, clock: Clock, zone_name: str, courier: Courier, figures: AlarmFigures
    ) -> None:
        self.figures = figures
        self._database = database
        self._clock = clock
        self._zone_name = zone_name
        self._courier = courier

    @property
    def kinds(self) -> Sequence[str]:
        """The names of the kinds."""
        return sorted(self._courier.kinds)

    async def list(self) -> Sequence[AlarmChannel]:
        """All channels, by ascending id."""
        return [self._shown(each) for each in await self._database.read(list_channels)]

    async def get(self, channel_id: ChannelId) -> AlarmChannel:
        """A channel.

        Raises:
            NotFoundError: there is none of this id.
        """
        return self._shown(await self._stored(channel_id))

    async def create(self, given: Mapping[str, Any], *, actor: str) -> AlarmChannel:
        """Make a channel.

        Raises:
            InvalidFieldError: a field is wrong.
            TakenError: a channel of this name exists.
        """
        for name in ("name", "kind"):
            if name not in given:
                raise InvalidFieldError(name, "is required")
        if given["kind"] not in self._courier.kinds:
            raise InvalidFieldError("kind", f"{given['kind'][:50]!r} is not one of {', '.join(self.kinds)}")
        blank = AlarmChannel(ChannelId(0), "", given["kind"], {})
        channel = self._changed(blank, {"settings": {}, **given})
        return self._shown(await self._database.write(self._create, channel, actor))

    async def update(
        self, channel_id: ChannelId, given: Mapping[str, Any], *, version: int | None, actor: str
    ) -> AlarmChannel:
        """Change the fields, and of `settings` the settings, that are given; a setting that is null is taken away.

        Raises:
            NotFoundError: there is no such channel.
            InvalidFieldError: a field is wrong.
            TakenError: a channel of this name exists.
            VersionConflictError: somebody changed it since `version` was read.
        """
        return self._shown(await self._database.write(self._update, channel_id, given, version, actor))

    async def delete(self, channel_id: ChannelId, *, actor: str) -> None:
        """Remove a channel; what waits for it is not sent.

        Raises:
            NotFoundError: there is no such channel.
        """
        await self._database.write(self._delete, channel_id, actor)

    async def test(self, channel_id: ChannelId, *, actor: str) -> TestResult:
        """Send a test message at once, even if the channel is disabled.

        Raises:
            NotFoundError: there is no such channel.
        """
        channel = await self._stored(channel_id)
        now_ms = self._clock.now()
        facts = AlarmFacts(AlarmKind.TEST, now_ms, now_ms, self._zone_name, words=f"{channel.name} ({actor})")
        try:
            return TestResult(sent=True, answer=await self._courier.send(channel, self._courier.texts.write(facts)))
        except ChannelError as error:
            return TestResult(sent=False, answer=str(error))

    async def _stored(self, channel_id: ChannelId) -> AlarmChannel:
        channel = await self._database.read(get_channel, channel_id)
        if channel is None:
            raise NotFoundError("alarm channel", channel_id)
        return channel

    def _create(self, connection: Connection, channel: AlarmChannel, actor: str) -> AlarmChannel:
        hold_channel_names(connection)
        if len(list_channels(connection)) >= _MOST_CHANNELS:
            raise InvalidFieldError("name", f"there are {_MOST_CHANNELS} channels already, the most that there can be")
        self._check_free(connection, channel)
        channel = replace(channel, id=insert_channel(connection, channel))
        self._tell(connection, EventKind.ALARM_CHANNEL_CREATED, channel, actor, self._details(channel))
        return channel

    def _update(
        self,
        connection: Connection,
        channel_id: ChannelId,
        given: Mapping[str, Any],
        version: int | None,
        actor: str,
    ) -> AlarmChannel:
        hold_channel_names(connection)
        old = self._locked(connection, channel_id)
        if version is not None and version != old.version:
            raise VersionConflictError("alarm channel", version, old.version)
        if given.get("kind", old.kind) != old.kind:
            raise InvalidFieldError("kind", f"is {old.kind} since the channel was made; make another channel")
        channel = self._changed(old, given)
        if channel == old:
            return old
        self._check_free(connection, channel)
        channel = replace(channel, version=old.version + 1)
        update_channel(connection, channel)
        details: dict[str, object] = {"before": self._details(old), "after": self._details(channel)}
        if channel.settings != old.settings:
            # Secrets look alike before and after.
            details["settings_changed"] = True
        self._tell(connection, EventKind.ALARM_CHANNEL_UPDATED, channel, actor, details)
        return channel

    def _delete(self, connection: Connection, channel_id: ChannelId, actor: str) -> None:
        channel = self._locked(connection, channel_id)
        waiting = delete_channel(connection, channel_id)
        details = {**self._details(channel), "waiting": waiting}
        self._tell(connection, EventKind.ALARM_CHANNEL_DELETED, channel, actor, details)

    def _locked(self, connection: Connection, channel_id: ChannelId) -> AlarmChannel:
        channel = get_channel(connection, channel_id, lock=True)
        if channel is None:
            raise NotFoundError("alarm channel", channel_id)
        return channel

    def _check_free(self, connection: Connection, channel: AlarmChannel) -> None:
        for other in list_channels(connection):
            if other.name == channel.name and other.id != channel.id:
                raise TakenError("name", channel.name, f"alarm channel {other.id}")

    def _changed(self, channel: AlarmChannel, given: Mapping[str, Any]) -> AlarmChannel:
        """The channel with the given fields, each checked."""
        changes: dict[str, Any] = {
            name: given[name] for name in ("disabled", "is_default", "for_admins") if name in given
        }
        if "name" in given:
            changes["name"] = checked_text("name", given["name"], _MOST_NAME, least=1).strip()
        if "settings" in given:
            changes["settings"] = self._checked_settings(channel, given["settings"])
        return replace(channel, **changes)

    def _checked_settings(self, channel: AlarmChannel, given: Mapping[str, Any]) -> Mapping[str, Any]:
        kind = self._courier.kinds.get(channel.kind)
        if kind is None:
            raise InvalidFieldError("settings", f"the plug-in of kind {channel.kind} is not installed on this node")
        try:
            values = read_values(kind.settings, given, channel.settings)
            self._courier.try_out(kind, values)
        except SettingRefusedError as error:
            raise InvalidFieldError(f"settings.{error.name}", error.problem) from error
        return values

    def _shown(self, channel: AlarmChannel) -> AlarmChannel:
        kind = self._courier.kinds.get(channel.kind)
        return replace(channel, settings=masked(() if kind is None else kind.settings, channel.settings))

    def _details(self, channel: AlarmChannel) -> dict[str, object]:
        shown = self._shown(channel)
        return {
            "name": shown.name,
            "kind": shown.kind,
            "settings": dict(shown.settings),
            "disabled": shown.disabled,
            "is_default": shown.is_default,
            "for_admins": shown.for_admins,
        }

    def _tell(
        self,
        connection: Connection,
        kind: EventKind,
        channel: AlarmChannel,
        actor: str,
        details: Mapping[str, object],
    ) -> None:
        details = {"channel_id": channel.id, **details}
        insert_event(connection, NewEvent(kind, self._clock.now(), actor, details=details))
