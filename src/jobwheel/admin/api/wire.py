"""The wire endpoints for executors: raw ASGI in front of the web application, since callbacks are hot."""

from collections.abc import Awaitable, Callable, Sequence

from jobwheel.admin.api.wire_jobs import WireHandler, WireJobs
from jobwheel.admin.domain.caller import WireCaller
from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.listing import listed
from jobwheel.admin.services.credentials import WireCredentials
from jobwheel.admin.services.progress import ProgressBook
from jobwheel.admin.services.registry import ForeignAppNameError, Registry, UnknownAppNameError
from jobwheel.admin.services.results import Results
from jobwheel.admin.store.database import is_outage
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.codec import decode, encode_envelope
from jobwheel.wire.dialects import decode_callbacks
from jobwheel.wire.messages import (
    APP_NAME_HEADER,
    FAILURE,
    SUCCESS,
    TOKEN_HEADER,
    WRONG_TOKEN_MESSAGE,
    AdminFeatures,
    RegistryReply,
    RegistryRequest,
)
from jobwheel.wire.progress import decode_progress
from jobwheel.wire.server import Handler, Receive, Scope, Send, WireApp, WireRequest, normalise_path

log = get_logger(__name__)

_ROOTS = ("/api", "/xxl-job-admin/api")
_REST = "/api/v1/"

AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class WireEndpoints:
    """`registry`, `registryRemove`, `callback`, `progress` and what manages jobs.

    The token is asked for before the body is read, and once more then: it may have been revoked meanwhile. A group's
    token acts for that group alone.
    """

    def __init__(
        self,
        credentials: WireCredentials,
        registry: Registry,
        results: Results,
        progress: ProgressBook,
        jobs: WireJobs,
    ) -> None:
        self._credentials = credentials
        self._registry = registry
        self._results = results
        self._progress = progress
        handlers: dict[str, WireHandler] = {
            "registry": self._register,
            "registryRemove": self._remove,
            "callback": self._callback,
            "progress": self._note_progress,
            **jobs.handlers(),
        }
        self.app = WireApp(
            {f"{root}/{name}": self._guarded(handler) for root in _ROOTS for name, handler in handlers.items()},
            self._refusal,
        )

    def in_front_of(self, other: AsgiApp) -> AsgiApp:
        """An application that takes the wire's paths, known or not, and leaves all others to `other`."""

        async def front(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and (self.app.handles(scope["path"]) or _is_wire(scope["path"])):
                await self.app(scope, receive, send)
            else:
                await other(scope, receive, send)

        return front

    def _judge(self, request: WireRequest) -> WireCaller | None:
        return self._credentials.judge(request.header(TOKEN_HEADER), request.header(APP_NAME_HEADER))

    def _refusal(self, request: WireRequest) -> bytes | None:
        return None if self._judge(request) is not None else _refused(request)

    def _guarded(self, handler: WireHandler) -> Handler:
        async def guarded(request: WireRequest) -> bytes:
            caller = self._judge(request)
            if caller is None:
                return _refused(request)
            try:
                return await handler(request, caller)
            except Exception as error:
                if not is_outage(error):
                    raise
                # Health says the rest; executors send it again, so a line for each of them is enough.
                log.warning("wire.database_away", path=request.path, client=request.client, error=str(error)[:200])
                return encode_envelope(FAILURE, "the database is away: send it again later")

        return guarded

    async def _register(self, request: WireRequest, caller: WireCaller) -> bytes:
        message = decode(request.body, RegistryRequest)
        try:
            # Only executors of dialect C name their group beside the message.
            is_newer = request.header(APP_NAME_HEADER) == message.registry_key
            draining = await self._registry.register(message, caller, is_newer=is_newer)
        except (UnknownAppNameError, ForeignAppNameError) as error:
            log.warning("wire.app_name_refused", code=error.code, app_name=message.registry_key, client=request.client)
            return encode_envelope(FAILURE, error.message)
        # Whoever sent no features expects a text or nothing.
        ours = RegistryReply(AdminFeatures(progress=True, drain=draining))
        return encode_envelope(SUCCESS, value=None if message.features is None else ours)

    async def _remove(self, request: WireRequest, caller: WireCaller) -> bytes:
        message = decode(request.body, RegistryRequest)
        try:
            await self._registry.remove(message, caller)
        except ForeignAppNameError as error:
            log.warning("wire.app_name_refused", code=error.code, app_name=message.registry_key, client=request.client)
            return encode_envelope(FAILURE, error.message)
        return encode_envelope(SUCCESS)

    async def _callback(self, request: WireRequest, caller: WireCaller) -> bytes:
        batch = decode_callbacks(request.body)
        named = _named("wire.callbacks_rejected", request, batch.rejected)
        unknown = await self._results.settle(batch.results, caller.group_id)
        return encode_envelope(SUCCESS, _with_unknown(named, request, unknown))

    async def _note_progress(self, request: WireRequest, caller: WireCaller) -> bytes:
        told, bad = decode_progress(request.body)
        named = _named("wire.progress_rejected", request, bad)
        self._progress.note(told, caller.group_id)
        return encode_envelope(SUCCESS, named)


def _refused(request: WireRequest) -> bytes:
    log.warning("wire.wrong_token", path=request.path, client=request.client)
    return encode_envelope(FAILURE, WRONG_TOKEN_MESSAGE)


def _named(event: str, request: WireRequest, bad: Sequence[str]) -> str | None:
    """Tell the log of bad items; what the reply says of them."""
    if not bad:
        return None
    log.warning(event, client=request.client, rejected=bad[:5], count=len(bad))
    return "; ".join(bad)[:2000]


def _with_unknown(named: str | None, request: WireRequest, unknown: Sequence[RunId]) -> str | None:
    """Tell the log, and in the reply, of results for runs that are not there: deleted, or another installation's.

    Not as a bad item, which our executors write down for people: deleting a job that runs is nothing wrong.
    """
    if not unknown:
        return named
    log.warning("wire.callbacks_of_unknown_runs", client=request.client, runs=list(unknown[:5]), count=len(unknown))
    told = f"there is no run {listed(unknown)}: nothing was stored of it"
    return told if named is None else f"{named}; {told}"


def _is_wire(path: str) -> bool:
    """Whether an executor asks: it expects an envelope even where there is nothing. REST stands under `/api/v1`."""
    path = normalise_path(path)
    if path.startswith(f"{_ROOTS[1]}/"):
        return True
    return path.startswith(f"{_ROOTS[0]}/") and not f"{path}/".startswith(_REST)
