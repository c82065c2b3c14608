"""People: names, roles and password hashes."""

import hashlib
import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, Row, func, insert, select, update

from jobwheel.admin.domain.ids import UserId
from jobwheel.admin.domain.user import Role, User
from jobwheel.admin.store.tables import job_user


@dataclass(frozen=True, slots=True)
class UserCredentials:
    """A user and the argon2id hash of his password; None if he has none of ours."""

    user: User
    password_hash: str | None


def find_user(connection: Connection, name: str) -> UserCredentials | None:
    """The user of a name, which is compared letter by letter."""
    if "\0" in name:
        # PostgreSQL cannot be asked for it.
        return None
    row = connection.execute(select(job_user).where(job_user.c.username == name)).first()
    # A database may compare names without regard to case; we do not.
    if row is None or row.username != name:
        return None
    return UserCredentials(user_of(row), row.password_hash)


def count_users(connection: Connection) -> int:
    """How many users there are."""
    return connection.execute(select(func.count()).select_from(job_user)).scalar_one()


def insert_user(connection: Connection, name: str, role: Role, password_hash: str) -> UserId:
    """Write a new user; the name must be free."""
    values = {
        "username": name,
        # The reference's column, which must hold something: a value that is the hash of no password.
        "password": hashlib.sha256(secrets.token_bytes(32)).hexdigest(),
        "role": 1 if role is Role.ADMIN else 0,
        "password_hash": password_hash,
        "role_name": role.value,
    }
    inserted = connection.execute(insert(job_user).values(values))
    assert inserted.inserted_primary_key is not None
    return UserId(inserted.inserted_primary_key[0])


def set_password_hash(connection: Connection, user_id: UserId, password_hash: str) -> None:
    """Replace a user's password. His sessions are another matter: see `sessions.delete_sessions_of`."""
    unusable = hashlib.sha256(secrets.token_bytes(32)).hexdigest()
    connection.execute(
        update(job_user).where(job_user.c.id == user_id).values(password_hash=password_hash, password=unusable)
    )


def user_of(row: Row[tuple[object, ...]]) -> User:
    """The user of a row that holds the columns of `job_user`."""
    return User(UserId(row.id), row.username, _role(row), bool(row.disabled))


def _role(row: Row[tuple[object, ...]]) -> Role:
    if row.role_name is None:
        return Role.ADMIN if row.role == 1 else Role.USER
    # A role of a later version: the least that there is.
    return Role(row.role_name) if row.role_name in set(Role) else Role.VIEWER
