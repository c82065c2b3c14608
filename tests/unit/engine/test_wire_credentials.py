"""Whom a request's tokens let in, without asking the database for it."""

import secrets

from jobwheel.admin.domain.caller import INSTALLATION, Caller, Right, WireCaller
from jobwheel.admin.domain.group_token import TokenRef
from jobwheel.admin.domain.ids import GroupId, UserId
from jobwheel.admin.domain.user import Role, User
from jobwheel.admin.engine.addresses import AddressBook
from jobwheel.admin.services.credentials import WireCredentials
from jobwheel.admin.store.group_tokens import NewToken, add_token
from jobwheel.kernel.fake_clock import FakeClock
from jobwheel.kernel.secret import Secret
from jobwheel.wire.tokens import AccessTokens
from tests.support.store import Store

INSTALLATIONS, OWN = secrets.token_urlsafe(16), secrets.token_urlsafe(16)


async def test_the_database_is_not_asked_for_a_request(store: Store, clock: FakeClock) -> None:
    group_id = await store.group()
    ends_ms = store.database.now_ms() + 60_000
    await store.database.write(add_token, group_id, NewToken(Secret(OWN), "ada", 0, ends_ms))
    book = AddressBook(store.database)
    await book.refresh()
    credentials = WireCredentials(AccessTokens([Secret(INSTALLATIONS)]), book)
    await store.database.stop()
    own = WireCaller("orders", TokenRef(group_id, 1))
    assert credentials.judge(OWN, "orders") == own
    assert credentials.judge(INSTALLATIONS, "orders") == credentials.judge(INSTALLATIONS, None) == INSTALLATION
    for token, app_name in (
        (OWN, None),
        (OWN, ""),
        (OWN, "billing"),
        (None, "orders"),
        ("", "orders"),
        ("x", "orders"),
    ):
        assert credentials.judge(token, app_name) is None
    await clock.advance(60)
    assert credentials.judge(OWN, "orders") is None


def test_a_groups_caller_manages_jobs_of_that_group_alone() -> None:
    caller = WireCaller("x" * 64, TokenRef(GroupId(3), 1)).caller
    assert (caller.name, caller.right, caller.is_admin) == (f"api:{'x' * 60}", Right.SCRIPTS, False)
    assert [caller.sees(GroupId(each)) for each in (3, 4)] == [True, False]
    assert not caller.sees(None)


def test_the_installations_caller_manages_all_jobs() -> None:
    assert INSTALLATION.caller == Caller("api", Right.SCRIPTS, is_program=True)
    assert INSTALLATION.caller.sees(GroupId(3))


def test_of_people_the_admin_alone_may_do_anything_yet() -> None:
    callers = {role: Caller.of_user(User(UserId(1), "ada", role, disabled=False)) for role in Role}
    assert callers[Role.ADMIN] == Caller("ada", Right.SCRIPTS, None, is_admin=True)
    for role in (Role.USER, Role.VIEWER):
        assert (callers[role].right, callers[role].sees(GroupId(1))) == (Right.NONE, False)
