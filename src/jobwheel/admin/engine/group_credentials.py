"""The tokens of groups in memory: whom they let in, and which of them an address is sent."""

from collections.abc import Sequence
from dataclasses import dataclass

from jobwheel.admin.domain.group_token import GroupToken, TokenRef, valid_tokens
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.store.registry import GroupAddresses
from jobwheel.kernel.secret import Secret


@dataclass(frozen=True, slots=True)
class _Group:
    """A group that has, or had, tokens. `known` tells with which of them an address registered; None: with none.

    `configured` are the addresses of a fixed list.
    """

    group_id: GroupId
    tokens: tuple[GroupToken, ...]
    known: dict[str, TokenRef | None]
    configured: frozenset[str]


class GroupCredentials:
    """What the address book read of the groups' tokens. Nobody asks the database for a request."""

    def __init__(self) -> None:
        self._groups: dict[str, list[_Group]] = {}

    def read(self, groups: Sequence[GroupAddresses]) -> None:
        """Take what was read of all groups just now."""
        found: dict[str, list[_Group]] = {}
        for group in groups:
            if group.known is not None:
                addresses = [each.address for each in group.registrations] if group.fixed else []
                each = _Group(group.group_id, group.tokens, dict(group.known), frozenset(addresses))
                found.setdefault(group.app_name, []).append(each)
        self._groups = found

    def find(self, app_name: str, token: str, now_ms: int) -> TokenRef | None:
        """The valid token of the app name's group that this is. Looks at each, so that time tells nothing."""
        found = None
        for group in self._groups.get(app_name, ()):
            for each in valid_tokens(group.tokens, now_ms):
                if each.secret.matches(token):
                    found = TokenRef(group.group_id, each.id)
        return found

    def choose(self, app_name: str, address: str, installation: Secret | None, now_ms: int) -> Secret | None:
        """The token that an address of the app name is sent; None: none at all.

        The one that it registered with. Who came with a group's token never gets that of the installation: not when
        its own has been revoked, and not when it has left the registry.
        """
        if not app_name:
            # The group is gone, and nobody knows any more what its executors came with.
            return None
        groups = self._groups.get(app_name)
        if groups is None:
            return installation
        unknown = False
        for group in groups:
            if address in group.known:
                ref = group.known[address]
                return installation if ref is None else self._secret(groups, ref, now_ms)
            unknown |= address not in group.configured
        if not unknown:
            return installation
        newest = [each for group in groups for each in valid_tokens(group.tokens, now_ms)[:1]]
        return newest[0].secret if newest else None

    @staticmethod
    def _secret(groups: Sequence[_Group], ref: TokenRef, now_ms: int) -> Secret | None:
        for group in groups:
            if group.group_id == ref.group_id:
                valid = valid_tokens(group.tokens, now_ms)
                return next((each.secret for each in valid if each.id == ref.token_id), None)
        return None
