"""What the command line does to people, on the database itself."""

from jobwheel.admin.domain.user import User
from jobwheel.admin.services.errors import NotFoundError
from jobwheel.admin.services.passwords import Passwords, check_new_password
from jobwheel.admin.services.sign_in import replace_password
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.users import find_user
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.secret import Secret

OPERATOR = "operator"
"""The actor of what is done at the command line, on the database."""


class Users:
    """The use cases of users that need no session."""

    def __init__(self, database: Database, clock: Clock, passwords: Passwords) -> None:
        self._database = database
        self._clock = clock
        self._passwords = passwords

    async def set_password(self, name: str, password: Secret) -> User:
        """Give a user a new password and end his sessions.

        Raises:
            NotFoundError: there is no such user.
            InvalidFieldError: the password is too short or too long.
        """
        check_new_password("password", password)
        found = await self._database.read(find_user, name)
        if found is None:
            raise NotFoundError("user", repr(name))
        password_hash = await self._passwords.hash(password)
        await self._database.write(replace_password, found.user, password_hash, OPERATOR, self._clock.now())
        return found.user
