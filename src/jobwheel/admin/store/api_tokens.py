"""The tokens of programs that use the REST API. The database knows only their hashes."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select

from jobwheel.admin.domain.api_token import ApiToken
from jobwheel.admin.domain.caller import Right
from jobwheel.admin.domain.ids import ApiTokenId, GroupId
from jobwheel.admin.store.tables import api_token


def insert_api_token(connection: Connection, new: ApiToken, token_hash: str) -> ApiTokenId:
    """Write a token; `new.id` is not looked at."""
    inserted = connection.execute(
        insert(api_token).values(
            name=new.name,
            token_hash=token_hash,
            job_group=new.group_id,
            # 0 reads, 1 changes, 2 changes scripts as well.
            can_write=int(new.right),
            created_by=new.created_by,
            created_ms=new.created_ms,
            expires_ms=new.expires_ms,
        )
    )
    assert inserted.inserted_primary_key is not None
    return ApiTokenId(inserted.inserted_primary_key[0])


def find_api_token(connection: Connection, token_hash: str, now_ms: int) -> ApiToken | None:
    """The token of a hash, unless it has expired."""
    row = connection.execute(select(api_token).where(api_token.c.token_hash == token_hash)).first()
    found = None if row is None else _token(row)
    return found if found is not None and found.is_valid(now_ms) else None


def list_api_tokens(connection: Connection, after_id: int, limit: int) -> Sequence[ApiToken]:
    """Tokens by ascending id, those that have expired too."""
    query = select(api_token).where(api_token.c.id > after_id).order_by(api_token.c.id).limit(limit)
    return [_token(row) for row in connection.execute(query)]


def take_api_token(connection: Connection, token_id: ApiTokenId) -> ApiToken | None:
    """Remove a token; what it was, None if there is none."""
    row = connection.execute(select(api_token).where(api_token.c.id == token_id).with_for_update()).first()
    connection.execute(delete(api_token).where(api_token.c.id == token_id))
    return None if row is None else _token(row)


def delete_api_tokens_of(connection: Connection, group_id: GroupId) -> int:
    """Remove the tokens that are for a group alone; says how many."""
    return connection.execute(delete(api_token).where(api_token.c.job_group == group_id)).rowcount


def _token(row: Row[*tuple[Any, ...]]) -> ApiToken:
    # A level that nobody knows is not taken for more than reading.
    right = Right(row.can_write) if row.can_write in (Right.WRITE, Right.SCRIPTS) else Right.READ
    group_id = None if row.job_group is None else GroupId(row.job_group)
    return ApiToken(ApiTokenId(row.id), row.name, group_id, right, row.created_by, row.created_ms, row.expires_ms)
