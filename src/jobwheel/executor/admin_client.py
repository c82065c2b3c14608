"""The admins, as an executor sees them."""

from jobwheel.executor.errors import AdminRefusedError
from jobwheel.executor.settings import ExecutorSettings
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.client import WireClient, join_url
from jobwheel.wire.codec import decode_envelope, encode
from jobwheel.wire.dialects import encode_callbacks, encode_callbacks_for_a_and_b
from jobwheel.wire.errors import MalformedMessageError, UnreachableError
from jobwheel.wire.messages import (
    APP_NAME_HEADER,
    CONTENT_TYPE,
    TOKEN_HEADER,
    WRONG_TOKEN_MESSAGE,
    Dialect,
    Envelope,
    Features,
    Progress,
    RegistryRequest,
    Result,
)

log = get_logger(__name__)

_JAVA_PATH = "/xxl-job-admin"
REGISTRY_GROUP = "EXECUTOR"


class AdminClient:
    """Calls the API that admins serve, in the dialect of the settings, or in the one that each admin turns out to have.

    It turns out by callbacks. Without a dialect in the settings a callback goes in a shape that admins of A and of B
    take, and if that is refused, in C's. Each make of admin refuses the other shape before it stores anything, so that
    nothing is lost or doubled meanwhile; what was taken is tried first the next time. Admins of ours, which say so when
    an executor registers, get B. Whatever else is sent is the same
    in every dialect, but for the app name, which admins of C want and others ignore.

    Every method takes the admin's root, and raises:
        UnreachableError: no byte of the request was written.
        UncertainError: it was written, but no readable HTTP reply came.
        AdminRefusedError: the reply is not a success.
    """

    def __init__(self, settings: ExecutorSettings, client: WireClient) -> None:
        self._settings = settings
        self._client = client
        self._headers = _headers(settings)
        self._speaks_c: set[str] = set()
        self._ours: set[str] = set()

    async def register(self, admin: str, address: str, features: Features) -> Envelope:
        """Say that this executor is there and alive."""
        envelope = await self._post(admin, "api/registry", encode(self._registry(address, features)))
        if b'"features"' in bytes(envelope.data):
            self._ours.add(admin)
        return envelope

    async def remove(self, admin: str, address: str) -> Envelope:
        """Say that this executor takes no more runs."""
        return await self._post(admin, "api/registryRemove", encode(self._registry(address, None)))

    async def callback(self, admin: str, results: list[Result]) -> Envelope:
        """Hand over results. A success means that the admin has them for good, or that it never could take them."""
        dialect = self._settings.dialect or (Dialect.B if admin in self._ours else None)
        if dialect is not None:
            return await self._callback(admin, encode_callbacks(results, dialect))
        speaks_c = admin in self._speaks_c
        try:
            return await self._callback(admin, _in_shape(results, c=speaks_c))
        except AdminRefusedError as refusal:
            return await self._callback_otherwise(admin, results, refusal)

    async def _callback_otherwise(self, admin: str, results: list[Result], refusal: AdminRefusedError) -> Envelope:
        """Try the other shape. What cannot be the shape's fault, or refuses both, is told as it was."""
        speaks_c = admin in self._speaks_c
        if WRONG_TOKEN_MESSAGE in refusal.reason:
            raise refusal
        try:
            envelope = await self._callback(admin, _in_shape(results, c=not speaks_c))
        except UnreachableError:
            raise refusal from None
        except AdminRefusedError as error:
            reason = f"{refusal.reason}; in {'dialects A and B' if speaks_c else 'dialect C'}: {error.reason}"
            raise AdminRefusedError(refusal.url, refusal.status, reason, readable=refusal.readable) from error
        self._speaks_c ^= {admin}
        log.info("admin.dialect_learnt", admin=admin, dialect="A or B" if speaks_c else "C")
        return envelope

    async def _callback(self, admin: str, body: bytes) -> Envelope:
        return await self._post(admin, "api/callback", body)

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
            if reply.status == 404 and not admin.endswith(_JAVA_PATH):
                reason += f" That of XXL-JOB's before 3.5 is {admin}{_JAVA_PATH}"
            raise AdminRefusedError(url, reply.status, reason, readable=False) from error
        if not envelope.ok:
            reason = envelope.msg or "no reason given"
            raise AdminRefusedError(url, envelope.code, reason, readable=True)
        return envelope


def _headers(settings: ExecutorSettings) -> dict[str, str]:
    headers = {"Content-Type": CONTENT_TYPE}
    if settings.access_tokens:
        headers[TOKEN_HEADER] = settings.access_tokens[0].reveal()
    # A name that no header can carry is none that an admin of C could know.
    if settings.app_name and settings.app_name.isascii() and settings.dialect in {Dialect.C, None}:
        headers[APP_NAME_HEADER] = settings.app_name
    return headers


def _in_shape(results: list[Result], *, c: bool) -> bytes:
    return encode_callbacks(results, Dialect.C) if c else encode_callbacks_for_a_and_b(results)
