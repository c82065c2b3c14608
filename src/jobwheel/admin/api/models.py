"""What all models of the API share."""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Final, Generic, TypeVar

from fastapi import Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

Item = TypeVar("Item")

MOST_ID: Final = 2**63 - 1
DEFAULT_LIMIT: Final = 50
MOST_LIMIT: Final = 500
MOST_SEARCH: Final = 255
"""How many characters are looked for: what is looked at has no more, and SQLite takes no pattern of any length."""

Id = Annotated[int, Field(ge=1, le=MOST_ID)]
JobRef = Annotated[int, Field(ge=1, le=2**31 - 1)]
"""The id of a job that a list names: no larger one can be stored."""
PathId = Annotated[int, Path(ge=1, le=MOST_ID)]
Cursor = Annotated[int | None, Field(ge=0, le=MOST_ID, description="The `next` of the page before")]


_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def _unstorable(value: object) -> str | None:
    """A character within a value that JSON can spell and no database store. Bodies in it have looked at their own."""
    if isinstance(value, str):
        found = _UNSTORABLE.search(value)
        return None if found is None else found[0]
    if isinstance(value, dict):
        return _unstorable([*value.keys(), *value.values()])
    return next(filter(None, map(_unstorable, value)), None) if isinstance(value, list) else None


def _storable(value: Any) -> Any:
    found = _unstorable(value)
    if found == "\0":
        # Nothing that is stored holds one, and PostgreSQL does not even compare with it.
        raise PydanticCustomError("nul", "holds the character U+0000, which is not allowed")
    if found is not None:
        raise PydanticCustomError("string_unicode", "holds half of a surrogate pair")
    return value


class Body(BaseModel):
    """A request's body: exact types, no unknown fields, and only characters that can be stored."""

    model_config = ConfigDict(strict=True, extra="forbid")

    @field_validator("*")
    @classmethod
    def _check_characters(cls, value: Any) -> Any:
        return _storable(value)


def _without_defaults(schema: dict[str, Any]) -> None:
    for each in schema.get("properties", {}).values():
        each.pop("default", None)


class PatchBody(Body):
    """A request's body whose fields stay as they are when they are left out: nothing has a default."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)


class Query(BaseModel):
    """A request's query: texts that are read as what they should be, no unknown names."""

    model_config = ConfigDict(extra="forbid")


SEARCHABLE: Final = AfterValidator(_storable)
SearchText = Annotated[str, Field(max_length=MOST_SEARCH), SEARCHABLE]
"""What is looked for among stored texts."""


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
