"""`/api/v1/groups`."""

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as QueryMark
from pydantic import BaseModel, Field

from jobwheel.admin.api.caller import Actor
from jobwheel.admin.api.instants import to_text
from jobwheel.admin.api.models import Body, Page, PageQuery, PatchBody, PathId, one_of, page_of
from jobwheel.admin.domain.group import AddressType
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.services.groups import ADDRESS_TYPES, Groups, GroupView

AddressTypeName = Annotated[str, one_of(ADDRESS_TYPES)]


class GroupFields(Body):
    """What may be said about a group; `addresses` for address_type `fixed` alone."""

    app_name: str = ""
    title: str = ""
    address_type: AddressTypeName = "registered"
    addresses: list[str] = Field(default_factory=list)


class GroupCreate(GroupFields):
    """A new group."""

    app_name: str
    title: str


class GroupPatch(GroupFields, PatchBody):
    """Fields that are left out stay as they are; with `version` only if nobody changed the group meanwhile."""

    version: int | None = None


class LiveAddressModel(BaseModel):
    """An address that gets runs, but none anew while it is draining; one of a fixed list never beats."""

    address: str
    last_beat_at: str | None
    instance_id: str | None
    draining: bool


class DrainBody(Body):
    """Which of the group's live addresses is meant."""

    address: str


class GroupModel(BaseModel):
    """A group. `addresses` of a registered group is what was live when the list was written last."""

    id: int
    app_name: str
    title: str
    address_type: str
    addresses: list[str]
    live_addresses: list[LiveAddressModel]
    updated_at: str
    version: int


def group_router(groups: Groups) -> APIRouter:
    """The routes of groups."""
    router = APIRouter(prefix="/groups", tags=["groups"])

    @router.get("")
    async def list_groups(query: Annotated[PageQuery, QueryMark()]) -> Page[GroupModel]:
        found = await groups.page(query.after or 0, query.limit + 1)
        return page_of([_model(view) for view in found], [view.group.id for view in found], query.limit)

    @router.post("", status_code=201)
    async def create_group(body: GroupCreate, actor: Actor) -> GroupModel:
        return _model(await groups.create(body.model_dump(exclude_unset=True), actor=actor))

    @router.get("/{group_id}")
    async def get_group(group_id: PathId) -> GroupModel:
        return _model(await groups.get(GroupId(group_id)))

    @router.patch("/{group_id}")
    async def update_group(group_id: PathId, body: GroupPatch, actor: Actor) -> GroupModel:
        given = body.model_dump(exclude_unset=True, exclude={"version"})
        return _model(await groups.update(GroupId(group_id), given, version=body.version, actor=actor))

    @router.delete("/{group_id}", status_code=204)
    async def delete_group(group_id: PathId, actor: Actor) -> None:
        await groups.delete(GroupId(group_id), actor=actor)

    _add_draining(router, groups)
    return router


def _add_draining(router: APIRouter, groups: Groups) -> None:
    @router.post("/{group_id}/drain")
    async def drain_address(group_id: PathId, body: DrainBody, actor: Actor) -> GroupModel:
        return _model(await groups.drain(GroupId(group_id), body.address, draining=True, actor=actor))

    @router.post("/{group_id}/undrain")
    async def undrain_address(group_id: PathId, body: DrainBody, actor: Actor) -> GroupModel:
        return _model(await groups.drain(GroupId(group_id), body.address, draining=False, actor=actor))


def _model(view: GroupView) -> GroupModel:
    group = view.group
    return GroupModel(
        id=group.id,
        app_name=group.app_name,
        title=group.title,
        address_type="fixed" if group.address_type is AddressType.FIXED else "registered",
        addresses=list(group.addresses),
        live_addresses=[
            LiveAddressModel(
                address=each.address,
                last_beat_at=to_text(each.last_beat_ms),
                instance_id=each.instance_id,
                draining=each.draining,
            )
            for each in view.live_addresses
        ],
        updated_at=to_text(group.updated_ms),
        version=group.version,
    )
