"""The admins, as an executor sees them."""

from jobwheel.executor.errors import AdminRefusedError
from jobwheel.executor.settings import ExecutorSettings
from jobwheel.wire.client import WireClient, join_url
from jobwheel.wire.codec import decode_envelope, encode
from jobwheel.wire.dialects import encode_callbacks
from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.messages import (
    APP_NAME_HEADER,
    CONTENT_TYPE,
    TOKEN_HEADER,
    Dialect,
    Envelope,
    Features,
    Progress,
    RegistryRequest,
    Result,
)

REGISTRY_GROUP = "EXECUTOR"


class AdminClient:
    """Calls the API that admins serve, in the dialect of the settings.

    Every method takes the admin's root, and raises:
        UnreachableError: no byte of the request was written.
        UncertainError: it was written, but no readable HTTP reply came.
        AdminRefusedError: the reply is not a success.
    """

    def __init__(self, settings: ExecutorSettings, client: WireClient) -> None:
        self._settings = settings
        self._client = client
        self._headers = _headers(settings)

    async def register(self, admin: str, address: str, features: Features) -> Envelope:
        """Say that this executor is there and alive."""
        return await self._post(admin, "api/registry", encode(self._registry(address, features)))

    async def remove(self, admin: str, address: str) -> Envelope:
        """Say that this executor takes no more runs."""
        return await self._post(admin, "api/registryRemove", encode(self._registry(address, None)))

    async def callback(self, admin: str, results: list[Result]) -> Envelope:
        """Hand over results. A success means that the admin has them for good, or that it never could take them."""
        return await self._post(admin, "api/callback", encode_callbacks(results, self._settings.dialect))

    async def progress(self, admin: str, progress: list[Progress]) -> Envelope:
        """Tell how far runs are."""
        return await self._post(admin, "api/progress", encode(progress))

    def _registry(self, address: str, features: Features | None) -> RegistryRequest:
        return RegistryRequest(
            registry_group=REGISTRY_GROUP,
            registry_key=self._settings.app_name,
            registry_value=address,
            features=features,
        )

    async def _post(self, admin: str, path: str, body: bytes) -> Envelope:
        url = join_url(admin, path)
        reply = await self._client.post(url, body, self._headers, self._settings.timeout_s)
        try:
            envelope = decode_envelope(reply.body)
        except MalformedMessageError as error:
            reason = f"HTTP status {reply.status}, not an admin's answer; is {admin} the admin's base URL?"
            raise AdminRefusedError(url, reply.status, reason, readable=False) from error
        if not envelope.ok:
            reason = envelope.msg or "no reason given"
            raise AdminRefusedError(url, envelope.code, reason, readable=True)
        return envelope


def _headers(settings: ExecutorSettings) -> dict[str, str]:
    headers = {"Content-Type": CONTENT_TYPE}
    if settings.access_tokens:
        headers[TOKEN_HEADER] = settings.access_tokens[0].reveal()
    if settings.dialect is Dialect.C:
        headers[APP_NAME_HEADER] = settings.app_name
    return headers
