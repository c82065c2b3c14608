"""Which token lets in, and which one is sent: the installation's to nobody who came with another."""

from collections.abc import Mapping

import pytest

from jobwheel.admin.domain.group import Registration
from jobwheel.admin.domain.group_token import GroupToken, TokenRef
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.engine.group_credentials import GroupCredentials
from jobwheel.admin.store.registry import GroupAddresses
from jobwheel.kernel.secret import Secret

NOW_MS = 1_000_000
A, B = "http://a:9999/", "http://b:9999/"
ORDERS, BILLING = GroupId(1), GroupId(2)
INSTALLATION, OLD, NEW = Secret("installation-made-up"), Secret("old-made-up"), Secret("new-made-up")
TOKENS = (GroupToken(1, OLD, "ada", 0, NOW_MS + 1000), GroupToken(2, NEW, "ada", 0))


def group(
    *tokens: GroupToken,
    group_id: GroupId = ORDERS,
    app_name: str = "orders",
    known: Mapping[str, TokenRef | None] | None = None,
    fixed: tuple[str, ...] = (),
) -> GroupAddresses:
    listed = tuple(Registration(app_name, each, 0, None) for each in fixed)
    return GroupAddresses(group_id, app_name, bool(fixed), listed, tokens, known or {})


def read(*groups: GroupAddresses) -> GroupCredentials:
    credentials = GroupCredentials()
    credentials.read(groups)
    return credentials


class TestFind:
    def test_each_valid_token_of_the_app_name_lets_in(self) -> None:
        credentials = read(group(*TOKENS))
        assert credentials.find("orders", OLD.reveal(), NOW_MS) == TokenRef(ORDERS, 1)
        assert credentials.find("orders", NEW.reveal(), NOW_MS) == TokenRef(ORDERS, 2)

    def test_one_that_is_over_does_not(self) -> None:
        assert read(group(*TOKENS)).find("orders", OLD.reveal(), NOW_MS + 1000) is None

    @pytest.mark.parametrize(("app_name", "token"), [("billing", "new-made-up"), ("orders", "new"), ("orders", "")])
    def test_no_other_does(self, app_name: str, token: str) -> None:
        other = group(group_id=BILLING, app_name="billing")
        assert read(group(*TOKENS), other).find(app_name, token, NOW_MS) is None


class TestChoose:
    def choose(self, credentials: GroupCredentials, address: str, now_ms: int = NOW_MS) -> Secret | None:
        return credentials.choose("orders", address, INSTALLATION, now_ms)

    def test_without_group_tokens_it_is_the_installations(self) -> None:
        never = GroupAddresses(ORDERS, "orders", fixed=False, registrations=())
        assert self.choose(read(never), A) == INSTALLATION
        assert self.choose(read(), A) == INSTALLATION

    def test_it_is_the_one_that_the_address_came_with(self) -> None:
        credentials = read(group(*TOKENS, known={A: TokenRef(ORDERS, 1), B: None}))
        assert self.choose(credentials, A) == OLD
        assert self.choose(credentials, B) == INSTALLATION

    def test_one_that_is_over_is_not_replaced_by_another(self) -> None:
        credentials = read(group(*TOKENS, known={A: TokenRef(ORDERS, 1)}))
        assert self.choose(credentials, A, NOW_MS + 1000) is None

    def test_after_the_last_one_was_revoked_nothing_is_sent(self) -> None:
        assert self.choose(read(group(known={A: TokenRef(ORDERS, 1)})), A) is None

    def test_an_address_that_has_left_gets_what_the_group_has_now(self) -> None:
        assert self.choose(read(group(*TOKENS)), A) == NEW
        assert self.choose(read(group()), A) is None

    def test_an_address_that_a_person_listed_gets_the_installations_unless_it_came_with_another(self) -> None:
        credentials = read(group(*TOKENS, fixed=(A, B), known={A: TokenRef(ORDERS, 2)}))
        assert self.choose(credentials, A) == NEW
        assert self.choose(credentials, B) == INSTALLATION

    def test_a_group_that_is_gone_has_no_token(self) -> None:
        assert read().choose("", A, INSTALLATION, NOW_MS) is None
