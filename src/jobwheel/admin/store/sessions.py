"""Sessions of people who signed in. The database knows only the hash of a session's token."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from jobwheel.admin.domain.ids import UserId
from jobwheel.admin.domain.user import User
from jobwheel.admin.store.tables import job_user, session
from jobwheel.admin.store.users import user_of


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to be written; times are epoch milliseconds, `client` is what the browser calls itself."""

    token_hash: str
    user_id: UserId
    created_ms: int
    expires_ms: int
    client: str


@dataclass(frozen=True, slots=True)
class LiveSession:
    """Whose session it is, and until when."""

    user: User
    expires_ms: int


def insert_session(connection: Connection, new: NewSession) -> None:
    """Write a session."""
    connection.execute(
        insert(session).values(
            token_hash=new.token_hash,
            user_id=new.user_id,
            created_ms=new.created_ms,
            expires_ms=new.expires_ms,
            client=new.client,
        )
    )


def find_session(connection: Connection, token_hash: str, now_ms: int) -> LiveSession | None:
    """The session of a token's hash, unless it is over or its user is disabled."""
    query = (
        select(job_user, session.c.expires_ms)
        .join(session, session.c.user_id == job_user.c.id)
        .where(session.c.token_hash == token_hash, session.c.expires_ms > now_ms, job_user.c.disabled == 0)
    )
    row = connection.execute(query).first()
    return None if row is None else LiveSession(user_of(row), row.expires_ms)


def delete_session(connection: Connection, token_hash: str) -> bool:
    """End a session; says whether there was one."""
    return bool(connection.execute(delete(session).where(session.c.token_hash == token_hash)).rowcount)


def delete_sessions_of(connection: Connection, user_id: UserId) -> int:
    """End all sessions of a user; says how many there were."""
    return connection.execute(delete(session).where(session.c.user_id == user_id)).rowcount
