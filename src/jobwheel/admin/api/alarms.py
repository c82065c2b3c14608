"""`/api/v1/alarm-channels`."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from jobwheel.admin.api.caller import Actor
from jobwheel.admin.api.models import Body, Page, PatchBody, PathId
from jobwheel.admin.domain.alarm import AlarmChannel
from jobwheel.admin.domain.ids import ChannelId
from jobwheel.admin.services.alarm_channels import AlarmChannels


class ChannelFields(Body):
    """What may be said about a channel. A disabled one is sent nothing.

    `is_default`: for jobs that name no channel, and for groups; `for_admins`: for troubles of the admin itself.
    """

    name: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    disabled: bool = False
    is_default: bool = False
    for_admins: bool = False


class ChannelCreate(ChannelFields):
    """A new channel: its kind says which settings it has."""

    name: str
    kind: str


class ChannelPatch(ChannelFields, PatchBody):
    """Fields and settings that are left out, or given back masked, stay as they are; a null takes a setting away.

    With `version` only if nobody changed the channel meanwhile.
    """

    version: int | None = None


class ChannelModel(BaseModel):
    """A channel; secrets among its settings are masked."""

    id: int
    name: str
    kind: str
    settings: dict[str, Any]
    disabled: bool
    is_default: bool
    for_admins: bool
    version: int


class TestModel(BaseModel):
    """Whether a test message was taken, and what the far side said, or why nothing was sent."""

    sent: bool
    answer: str


def alarm_router(channels: AlarmChannels) -> APIRouter:
    """The routes of channels."""
    router = APIRouter(prefix="/alarm-channels", tags=["alarms"])

    @router.get("")
    async def list_channels() -> Page[ChannelModel]:
        return Page(items=[_model(each) for each in await channels.list()], next=None)

    @router.post("", status_code=201)
    async def create_channel(body: ChannelCreate, actor: Actor) -> ChannelModel:
        return _model(await channels.create(body.model_dump(exclude_unset=True), actor=actor))

    @router.get("/{channel_id}")
    async def get_channel(channel_id: PathId) -> ChannelModel:
        return _model(await channels.get(ChannelId(channel_id)))

    @router.patch("/{channel_id}")
    async def update_channel(channel_id: PathId, body: ChannelPatch, actor: Actor) -> ChannelModel:
        given = body.model_dump(exclude_unset=True, exclude={"version"})
        return _model(await channels.update(ChannelId(channel_id), given, version=body.version, actor=actor))

    @router.delete("/{channel_id}", status_code=204)
    async def delete_channel(channel_id: PathId, actor: Actor) -> None:
        await channels.delete(ChannelId(channel_id), actor=actor)

    @router.post("/{channel_id}/test")
    async def test_channel(channel_id: PathId, actor: Actor) -> TestModel:
        result = await channels.test(ChannelId(channel_id), actor=actor)
        return TestModel(sent=result.sent, answer=result.answer)

    return router


def _model(channel: AlarmChannel) -> ChannelModel:
    return ChannelModel(
        id=channel.id,
        name=channel.name,
        kind=channel.kind,
        settings=dict(channel.settings),
        disabled=channel.disabled,
        is_default=channel.is_default,
        for_admins=channel.for_admins,
        version=channel.version,
    )
