"""Password hashes: argon2id, one at a time, away from the event loop."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from jobwheel.admin.services.errors import InvalidFieldError
from jobwheel.kernel.secret import Secret

LEAST_CHARACTERS: Final = 8
MOST_CHARACTERS: Final = 256

# The hash of a random text that nobody knows: what a wrong user name is checked against, for the same time.
_NOBODY: Final = "$argon2id$v=19$m=19456,t=2,p=1$UxbzkkR5wMj6yKB7SrcUUQ$g6frWHsTo1Onzz8gl9PdqteFlJVheyB1bKTF+RRFlNk"


def new_hasher() -> PasswordHasher:
    """The hash function of passwords. 19 MiB each, so that a burst of sign-ins cannot exhaust the memory."""
    return PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


def check_new_password(field: str, password: Secret) -> None:
    """Refuse a new password that is too short or too long.

    Raises:
        InvalidFieldError: it is.
    """
    length = len(password.reveal())
    if not LEAST_CHARACTERS <= length <= MOST_CHARACTERS:
        raise InvalidFieldError(field, f"has {length} characters, {LEAST_CHARACTERS} to {MOST_CHARACTERS} are allowed")


def verify(hasher: PasswordHasher, password_hash: str | None, password: Secret) -> bool:
    """Whether the password is the hash's. Without a hash the same work is done for nothing."""
    try:
        hasher.verify(password_hash or _NOBODY, _bytes(password))
    except (VerificationError, InvalidHashError):
        return False
    return password_hash is not None


def _bytes(password: Secret) -> bytes:
    return password.reveal().encode(errors="surrogatepass")


class Passwords:
    """Hashes and checks in a thread of its own, one after the other.

    The thread ends with `close`, or when nobody holds the object any more.
    """

    def __init__(self) -> None:
        self._hasher = new_hasher()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="jobwheel-passwords")

    async def hash(self, password: Secret) -> str:
        """The hash to store."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._hasher.hash, _bytes(password))

    async def verify(self, password_hash: str | None, password: Secret) -> bool:
        """Whether the password is the hash's; takes as long without a hash."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, verify, self._hasher, password_hash, password)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)
