"""What all models of the API share."""

from collections.abc import Iterable
from typing import Annotated, Any, Final, Generic, TypeVar

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

Item = TypeVar("Item")

MOST_ID: Final = 2**63 - 1
DEFAULT_LIMIT: Final = 50
MOST_LIMIT: Final = 500

Id = Annotated[int, Field(ge=1, le=MOST_ID)]
JobRef = Annotated[int, Field(ge=1, le=2**31 - 1)]
"""The id of a job that a list names: no larger one can be stored."""
PathId = Annotated[int, Path(ge=1, le=MOST_ID)]
Cursor = Annotated[int | None, Field(ge=0, le=MOST_ID, description="The `next` of the page before")]


class Body(BaseModel):
    """A request's body: exact types, no unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid")


def _without_defaults(schema: dict[str, Any]) -> None:
    for each in schema.get("properties", {}).values():
        each.pop("default", None)


class PatchBody(Body):
    """A request's body whose fields stay as they are when they are left out: nothing has a default."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)


class Query(BaseModel):
    """A request's query: texts that are read as what they should be, no unknown names."""

    model_config = ConfigDict(extra="forbid")


class PageQuery(Query):
    """Which page of a list."""

    limit: int = Field(default=DEFAULT_LIMIT, ge=1, le=MOST_LIMIT)
    after: Cursor = None


class Page(BaseModel, Generic[Item]):
    """A page of a list; `next` is the cursor of the page after it."""

    items: list[Item]
    next: str | None


class ErrorBody(BaseModel):
    """What went wrong; `field` names the input at fault."""

    code: str
    message: str
    field: str | None


class ErrorReply(BaseModel):
    """The reply to every request that failed."""

    error: ErrorBody


def one_of(names: Iterable[str]) -> Any:
    """Tell the API's description which names a text may be. The use cases check them, with words of their own."""
    return Field(json_schema_extra={"enum": [str(name) for name in names]})


def page_of(items: list[Item], last_ids: list[int], limit: int) -> Page[Item]:
    """A page made of up to `limit` + 1 items, of which the last one only tells that there is more."""
    more = len(items) > limit
    return Page(items=items[:limit], next=str(last_ids[limit - 1]) if more else None)
