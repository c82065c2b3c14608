"""`/api/v1/tokens`, and the tokens of groups."""

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as QueryMark
from pydantic import BaseModel, Field

from jobwheel.admin.api.caller import Actor
from jobwheel.admin.api.instants import from_text, to_text
from jobwheel.admin.api.models import Body, Id, Page, PageQuery, PathId, one_of, page_of
from jobwheel.admin.domain.api_token import ApiToken
from jobwheel.admin.domain.group_token import GroupToken
from jobwheel.admin.domain.ids import ApiTokenId, GroupId
from jobwheel.admin.services.api_tokens import ACCESSES, ApiTokens, NewApiToken, access_name
from jobwheel.admin.services.group_tokens import DEFAULT_OVERLAP_S, GroupTokens


class ApiTokenBody(Body):
    """A token for a program: `group_id` null = for all groups, `expires_at` null = until it is revoked.

    With `read` it changes nothing, with `write` everything in its groups but scripts, with `scripts` these as well. A
    document with scripts that are stored just so can be applied with `write`.
    """

    name: str
    access: Annotated[str, one_of(ACCESSES)] = "read"
    group_id: Id | None = None
    expires_at: str | None = None


class ApiTokenModel(BaseModel):
    """A token for a program, without the token itself."""

    id: int
    name: str
    access: str
    group_id: int | None
    created_by: str
    created_at: str
    expires_at: str | None


class NewApiTokenModel(ApiTokenModel):
    """A token that was made just now: `token` is shown here and never again."""

    token: str


class RotateBody(Body):
    """A rotation: for so many seconds the token before is valid as well; 0 ends it at once."""

    overlap_s: int = Field(default=DEFAULT_OVERLAP_S)


class GroupTokenModel(BaseModel):
    """A valid token of a group; of `token` only the end is told."""

    id: int
    token: str
    created_by: str
    created_at: str
    expires_at: str | None


class NewGroupTokenModel(GroupTokenModel):
    """A token that was made just now: `token` is shown here and never again."""


class GroupTokensModel(BaseModel):
    """The valid tokens of a group, the newest first."""

    items: list[GroupTokenModel]


def token_router(tokens: ApiTokens) -> APIRouter:
    """The routes of API tokens."""
    router = APIRouter(prefix="/tokens", tags=["tokens"])

    @router.get("")
    async def list_tokens(query: Annotated[PageQuery, QueryMark()]) -> Page[ApiTokenModel]:
        found = await tokens.page(query.after or 0, query.limit + 1)
        return page_of([_model(each) for each in found], [each.id for each in found], query.limit)

    @router.post("", status_code=201)
    async def make_token(body: ApiTokenBody, actor: Actor) -> NewApiTokenModel:
        expires_ms = from_text("expires_at", body.expires_at)
        group_id = None if body.group_id is None else GroupId(body.group_id)
        made, secret = await tokens.make(NewApiToken(body.name, body.access, group_id, expires_ms), actor=actor)
        return NewApiTokenModel(**_model(made).model_dump(), token=secret.reveal())

    @router.delete("/{token_id}", status_code=204)
    async def revoke_token(token_id: PathId, actor: Actor) -> None:
        await tokens.revoke(ApiTokenId(token_id), actor=actor)

    return router


def group_token_router(tokens: GroupTokens) -> APIRouter:
    """The routes of groups' tokens."""
    router = APIRouter(prefix="/groups/{group_id}/tokens", tags=["groups"])

    @router.get("")
    async def list_group_tokens(group_id: PathId) -> GroupTokensModel:
        return GroupTokensModel(items=[_masked(each) for each in await tokens.list(GroupId(group_id))])

    @router.post("", status_code=201)
    async def make_group_token(group_id: PathId, actor: Actor) -> NewGroupTokenModel:
        return _shown(await tokens.make(GroupId(group_id), actor=actor))

    @router.post("/rotate", status_code=201)
    async def rotate_group_token(group_id: PathId, actor: Actor, body: RotateBody | None = None) -> NewGroupTokenModel:
        overlap_s = (body or RotateBody()).overlap_s
        return _shown(await tokens.rotate(GroupId(group_id), overlap_s, actor=actor))

    @router.delete("/{token_id}", status_code=204)
    async def revoke_group_token(group_id: PathId, token_id: PathId, actor: Actor) -> None:
        await tokens.revoke(GroupId(group_id), token_id, actor=actor)

    return router


def _model(token: ApiToken) -> ApiTokenModel:
    return ApiTokenModel(
        id=token.id,
        name=token.name,
        access=access_name(token.right),
        group_id=token.group_id,
        created_by=token.created_by,
        created_at=to_text(token.created_ms),
        expires_at=to_text(token.expires_ms),
    )


def _masked(token: GroupToken) -> GroupTokenModel:
    return GroupTokenModel(
        id=token.id,
        # Enough to tell it from the other one in an executor's settings.
        token=f"***{token.secret.reveal()[-4:]}",
        created_by=token.created_by,
        created_at=to_text(token.created_ms),
        expires_at=to_text(token.expires_ms),
    )


def _shown(token: GroupToken) -> NewGroupTokenModel:
    return NewGroupTokenModel(**{**_masked(token).model_dump(), "token": token.secret.reveal()})
