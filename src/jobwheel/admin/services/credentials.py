"""Whom the tokens of a request to the executors' API let in."""

from jobwheel.admin.domain.caller import INSTALLATION, WireCaller
from jobwheel.admin.engine.addresses import AddressBook
from jobwheel.wire.tokens import AccessTokens


class WireCredentials:
    """The installation's token, and the tokens of groups as the address book knows them: nothing asks the database."""

    def __init__(self, installation: AccessTokens, book: AddressBook) -> None:
        self._installation = installation
        self._book = book

    def judge(self, token: str | None, app_name: str | None) -> WireCaller | None:
        """Whom a request with this token and this app name acts for; None: for nobody."""
        if self._installation.accepts(token):
            return INSTALLATION
        if not token or not app_name:
            return None
        found = self._book.token_of(app_name, token)
        return None if found is None else WireCaller(app_name, found)
