"""The tokens of groups: JSON in a column of the group's row, read with it and changed under its lock."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from sqlalchemy import Connection, select, update

from jobwheel.admin.domain.group_token import GroupToken
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.store.tables import job_group
from jobwheel.kernel.secret import Secret


class _Token(msgspec.Struct, omit_defaults=True):
    id: int
    token: str
    created_by: str
    created_ms: int
    expires_ms: int | None = None


class _Column(msgspec.Struct):
    """What the column `access_tokens` holds."""

    next_id: int = 1
    tokens: list[_Token] = []


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token to be written; times are by the database's clock."""

    secret: Secret
    created_by: str
    created_ms: int
    expires_ms: int | None


def read_tokens(column: str | None) -> tuple[GroupToken, ...]:
    """The tokens in a group's column `access_tokens`, oldest first, whether they are valid or not."""
    if not column:
        return ()
    return tuple(
        GroupToken(each.id, Secret(each.token), each.created_by, each.created_ms, each.expires_ms)
        for each in _decoded(column).tokens
    )


def add_token(connection: Connection, group_id: GroupId, new: NewToken) -> GroupToken:
    """Write one more token of a group whose row is locked."""
    stored = _stored(connection, group_id)
    made = _Token(stored.next_id, new.secret.reveal(), new.created_by, new.created_ms, new.expires_ms)
    _write(connection, group_id, _Column(made.id + 1, [*stored.tokens, made]))
    return GroupToken(made.id, new.secret, new.created_by, new.created_ms, new.expires_ms)


def keep_tokens(connection: Connection, group_id: GroupId, tokens: Sequence[GroupToken]) -> None:
    """Replace the tokens of a group whose row is locked by these; ids of those that go are not given again."""
    kept = [_Token(each.id, each.secret.reveal(), each.created_by, each.created_ms, each.expires_ms) for each in tokens]
    _write(connection, group_id, _Column(_stored(connection, group_id).next_id, kept))


def _stored(connection: Connection, group_id: GroupId) -> _Column:
    return _decoded(connection.execute(select(job_group.c.access_tokens).where(job_group.c.id == group_id)).scalar())


def _write(connection: Connection, group_id: GroupId, column: _Column) -> None:
    text = msgspec.json.encode(column).decode()
    connection.execute(update(job_group).where(job_group.c.id == group_id).values(access_tokens=text))


def _decoded(column: str | None) -> _Column:
    try:
        return msgspec.json.decode(column or "{}", type=_Column)
    except msgspec.DecodeError:
        # Not as it is written here: no token is valid then.
        return _Column()
