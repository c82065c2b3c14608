"""`/api/v1/groups`."""

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as QueryMark
from pydantic import BaseModel, Field

from jobwheel.admin.api.caller import Actor, WhoAsks
from jobwheel.admin.api.instants import to_text
from jobwheel.admin.api.models import Body, Page, PageQuery, PatchBody, PathId, one_of, page_of
from jobwheel.admin.domain.group import AddressType, ExecutorLoad
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.services.groups import ADDRESS_TYPES, Groups, GroupView
from jobwheel.admin.services.probes import Probes, Reach

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


class ExecutorLoadModel(BaseModel):
    """What an executor on the SDK said with its last beat.

    `running` and `queued` runs, the latter wait for their job's thread; `unreported` results, which no admin has yet;
    `abandoned` threads, which nothing could end.
    """

    running: int
    queued: int
    unreported: int
    abandoned: int


class LiveAddressModel(BaseModel):
    """An address that gets runs, but none anew while it is draining; one of a fixed list never beats.

    `load` is null of executors that do not tell.
    """

    address: str
    last_beat_at: str | None
    instance_id: str | None
    draining: bool
    load: ExecutorLoadModel | None


class AddressBody(Body):
    """Which of the group's live addresses is meant."""

    address: str


class ProbeModel(BaseModel):
    """What an executor said to the node that was asked; `message` says why it is not alive to it."""

    address: str
    state: str = one_of(Reach)
    message: str
    took_ms: int


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


def group_router(groups: Groups, probes: Probes) -> APIRouter:
    """The routes of groups."""
    router = APIRouter(prefix="/groups", tags=["groups"])

    @router.get("")
    async def list_groups(query: Annotated[PageQuery, QueryMark()], caller: WhoAsks) -> Page[GroupModel]:
        found = await groups.page(query.after or 0, query.limit + 1, caller.group_ids)
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
    _add_probing(router, probes)
    return router


def _add_draining(router: APIRouter, groups: Groups) -> None:
    @router.post("/{group_id}/drain")
    async def drain_address(group_id: PathId, body: AddressBody, actor: Actor) -> GroupModel:
        return _model(await groups.drain(GroupId(group_id), body.address, draining=True, actor=actor))

    @router.post("/{group_id}/undrain")
    async def undrain_address(group_id: PathId, body: AddressBody, actor: Actor) -> GroupModel:
        return _model(await groups.drain(GroupId(group_id), body.address, draining=False, actor=actor))


def _add_probing(router: APIRouter, probes: Probes) -> None:
    @router.post("/{group_id}/probe")
    async def probe_address(group_id: PathId, body: AddressBody) -> ProbeModel:
        found = await probes.probe(GroupId(group_id), body.address)
        return ProbeModel(address=found.address, state=found.reach, message=found.message, took_ms=found.took_ms)


def _load(load: ExecutorLoad | None) -> ExecutorLoadModel | None:
    if load is None:
        return None
    return ExecutorLoadModel(
        running=load.running, queued=load.queued, unreported=load.spooled, abandoned=load.abandoned
    )


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
                load=_load(each.load),
            )
            for each in view.live_addresses
        ],
        updated_at=to_text(group.updated_ms),
        version=group.version,
    )
