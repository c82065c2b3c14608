"""What executors say of themselves: here I am, here I was."""

from typing import ClassVar

from jobwheel.admin.domain.caller import INSTALLATION, WireCaller
from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.group import MOST_ADDRESS, AddressType, Group
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.engine.addresses import AddressBook
from jobwheel.admin.services.texts import why_no_address
from jobwheel.admin.store import Connection, registry
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.drains import is_draining
from jobwheel.admin.store.events import insert_event
from jobwheel.admin.store.groups import hold_app_names, insert_group
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.errors import JobwheelError
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.client_request import without_credentials
from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.messages import MOST_INSTANCE, RegistryRequest

log = get_logger(__name__)

_MOST_REGISTRY_GROUP = 50
_MOST_APP_NAME = 64


class UnknownAppNameError(JobwheelError):
    """An executor registers under an app name that no group has."""

    code: ClassVar[str] = "unknown_app_name"

    def __init__(self, app_name: str) -> None:
        super().__init__(
            f"no group has the app name {app_name!r}: create one, or set JOBWHEEL_AUTO_CREATE_GROUPS=true on the admin",
            field="registryKey",
        )


class ForeignAppNameError(JobwheelError):
    """A group's credentials were used for another app name."""

    code: ClassVar[str] = "foreign_app_name"

    def __init__(self, own: str, app_name: str) -> None:
        super().__init__(
            f"registryKey: these credentials are for executors of {own!r} alone, not of {app_name[:_MOST_APP_NAME]!r}",
            field="registryKey",
        )


class Registry:
    """Notes beats and removals, and tells the address book at once."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        zone: InstallationZone,
        book: AddressBook,
        *,
        auto_create_groups: bool,
    ) -> None:
        self._database = database
        self._clock = clock
        self._zone = zone
        self._book = book
        self._auto_create_groups = auto_create_groups

    async def register(
        self, request: RegistryRequest, caller: WireCaller = INSTALLATION, *, is_newer: bool = False
    ) -> bool:
        """Note a beat; whether an operator wants that the executor takes no new runs.

        `is_newer`: it came as executors of dialect C do, so that nobody need find that out.

        Raises:
            MalformedMessageError: the app name or the address cannot be one.
            UnknownAppNameError: no group has the app name, and none may be made.
            ForeignAppNameError: the caller's credentials are of another app name.
        """
        _check_own(request, caller)
        _check(request)
        left_ms = self._book.left_ms(request.registry_key, request.registry_value)
        now_ms = self._database.now_ms()
        changed, draining = await self._database.write(self._beat, request, now_ms, caller, is_newer)
        self._book.welcome(request.registry_key, request.registry_value, left_ms, now_ms)
        if changed:
            await self._book.refresh()
            log.info("registry.address_added", app_name=request.registry_key, address=request.registry_value)
        return draining

    async def remove(self, request: RegistryRequest, caller: WireCaller = INSTALLATION) -> None:
        """Forget an address: it gets no run from this moment on.

        Raises:
            MalformedMessageError: no database could be asked for it.
            ForeignAppNameError: the caller's credentials are of another app name.
        """
        _check_own(request, caller)
        _check_storable(request)
        self._book.remove(request.registry_key, request.registry_value)
        if await self._database.write(self._remove, request, self._database.now_ms()):
            log.info("registry.address_removed", app_name=request.registry_key, address=request.registry_value)

    def _beat(
        self,
        connection: Connection,
        request: RegistryRequest,
        now_ms: int,
        caller: WireCaller,
        is_newer: bool,  # noqa: FBT001 - passed through `write`
    ) -> tuple[bool, bool]:
        if request.registry_group == registry.EXECUTORS and not registry.has_group(connection, request.registry_key):
            if not self._auto_create_groups:
                raise UnknownAppNameError(request.registry_key)
            hold_app_names(connection)
            # Another executor of the app name may have been faster.
            if not registry.has_group(connection, request.registry_key):
                self._create_group(connection, request.registry_key)
        changed = registry.beat(connection, self._zone, request, now_ms, caller.token, is_newer=is_newer)
        if changed:
            registry.store_address_lists(connection, self._zone, now_ms)
        # Of the database, not of the book: nodes that told otherwise in the same second would have it drain and not.
        return changed, request.features is not None and is_draining(connection, request)

    def _remove(self, connection: Connection, request: RegistryRequest, now_ms: int) -> bool:
        removed = registry.remove(connection, request)
        registry.store_address_lists(connection, self._zone, now_ms)
        return removed

    def _create_group(self, connection: Connection, app_name: str) -> None:
        now_ms = self._clock.now()
        group = Group(GroupId(0), app_name, app_name, AddressType.REGISTERED, (), now_ms, 0)
        group_id = insert_group(connection, self._zone, group)
        details = {"app_name": app_name, "cause": "its first executor registered"}
        insert_event(connection, NewEvent(EventKind.GROUP_CREATED, now_ms, group_id=group_id, details=details))


def _check_own(request: RegistryRequest, caller: WireCaller) -> None:
    is_own = request.registry_group == registry.EXECUTORS and request.registry_key == caller.app_name
    if caller.token is not None and not is_own:
        raise ForeignAppNameError(caller.app_name or "", request.registry_key)


def _check_storable(request: RegistryRequest) -> None:
    """Less than a beat has to pass: what an older version or another admin let in can be taken out."""
    texts = {
        "registryGroup": request.registry_group,
        "registryKey": request.registry_key,
        "registryValue": request.registry_value,
    }
    for field, text in texts.items():
        if "\0" in text:
            raise MalformedMessageError("holds the character U+0000", field=field)


def _check(request: RegistryRequest) -> None:
    if not request.registry_group or len(request.registry_group) > _MOST_REGISTRY_GROUP:
        raise MalformedMessageError(f"is not a text of 1 to {_MOST_REGISTRY_GROUP} characters", field="registryGroup")
    key, features = request.registry_key, request.features
    if not key or len(key) > _MOST_APP_NAME or not key.isprintable():
        raise MalformedMessageError(f"is not an app name of 1 to {_MOST_APP_NAME} characters", field="registryKey")
    if len(request.registry_value) > MOST_ADDRESS:
        raise MalformedMessageError(f"has more than {MOST_ADDRESS} characters", field="registryValue")
    if features is not None and not (len(features.instance) <= MOST_INSTANCE and features.instance.isprintable()):
        raise MalformedMessageError(f"is not an id of {MOST_INSTANCE} characters at most", field="features.instance")
    why = why_no_address(request.registry_value)
    if why is not None:
        shown = without_credentials(request.registry_value)[:100]
        raise MalformedMessageError(
            f"{shown!r} is not an address like http://10.0.0.7:9999/: {why}", field="registryValue"
        )
