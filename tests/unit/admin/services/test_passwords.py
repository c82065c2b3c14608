from collections.abc import Iterator
from typing import Literal

import pytest
from argon2 import PasswordHasher

from jobwheel.admin.services.passwords import Passwords, verify
from jobwheel.kernel.secret import Secret


@pytest.fixture
def passwords() -> Iterator[Passwords]:
    made = Passwords()
    yield made
    made.close()


async def test_the_hash_is_argon2id_with_nineteen_mebibytes(passwords: Passwords) -> None:
    first, second = await passwords.hash(Secret("päss")), await passwords.hash(Secret("päss"))
    assert first.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert first != second
    assert await passwords.verify(first, Secret("päss"))
    assert not await passwords.verify(first, Secret("pass"))


@pytest.mark.parametrize("stored", [None, "", "nonsense", "$argon2id$v=19$m=19456,t=2,p=1$x$y", "e10adc3949ba59abbe56"])
async def test_what_is_no_hash_matches_nothing(passwords: Passwords, stored: str | None) -> None:
    assert not await passwords.verify(stored, Secret(""))
    assert not await passwords.verify(stored, Secret("e10adc3949ba59abbe56"))


def test_nobody_has_no_password_even_if_one_knew_what_is_checked_instead() -> None:
    class Agreeing(PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002 - the base's name
            return True

    assert verify(Agreeing(), "stored", Secret("x"))
    assert not verify(Agreeing(), None, Secret("x"))


async def test_half_a_character_is_a_password_like_any_other(passwords: Passwords) -> None:
    stored = await passwords.hash(Secret("\ud800-password"))
    assert await passwords.verify(stored, Secret("\ud800-password"))
