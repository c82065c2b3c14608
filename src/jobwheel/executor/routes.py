"""The HTTP API that admins call."""

from collections.abc import Mapping
from typing import Final

import msgspec

from jobwheel.executor.control import RunControl
from jobwheel.executor.disk_threads import DiskThreads
from jobwheel.executor.gate import Refusal, RunGate
from jobwheel.executor.log_reader import RunLogReader, missing_page
from jobwheel.executor.run_log import RunLogFolder, is_storable
from jobwheel.executor.run_states import RunStates
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.batch import BATCH_PATH, decode_batch, encode_batch_reply
from jobwheel.wire.codec import decode, encode_envelope
from jobwheel.wire.dialects import decode_log_query
from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.messages import (
    FAILURE,
    SUCCESS,
    TOKEN_HEADER,
    WRONG_TOKEN_MESSAGE,
    JobQuery,
    KillRequest,
    LogPage,
    LogQuery,
    StatusQuery,
    TriggerRequest,
)
from jobwheel.wire.server import Handler, WireRequest
from jobwheel.wire.tokens import AccessTokens

log = get_logger(__name__)

_MOST_LOG_ID: Final = 2**63 - 1
# What a `datetime` can be: the years 1 to 9999.
_INSTANTS_MS: Final = range(-62_135_596_800_000, 253_402_300_800_000)


class ExecutorRoutes:
    """Answers each request with an envelope; whoever has not the token gets nothing else."""

    def __init__(
        self,
        instance: str,
        tokens: AccessTokens,
        gate: RunGate,
        control: RunControl,
        states: RunStates,
        folder: RunLogFolder,
        disk: DiskThreads,
    ) -> None:
        self._instance = instance
        self._tokens = tokens
        self._gate = gate
        self._control = control
        self._states = states
        self._folder = folder
        self._disk = disk
        self._reader = RunLogReader()
        self._success = encode_envelope(SUCCESS, instance=instance)

    def table(self) -> Mapping[str, Handler]:
        """The handlers by path, for those who pass `refusal`."""
        run = self._named(self.run)
        return {
            "/beat": self._named(self.beat),
            "/idleBeat": self._named(self.idle_beat),
            "/run": run,
            "/trigger": run,
            BATCH_PATH: self._named(self.run_batch),
            "/kill": self._named(self.kill),
            "/runStatus": self._named(self.run_status),
            "/log": self._named(self.log),
        }

    def refusal(self, request: WireRequest) -> bytes | None:
        """What who has not the token is answered, before the body is read; None: he has it."""
        if self._tokens.accepts(request.header(TOKEN_HEADER)):
            return None
        log.warning("executor.wrong_token", path=request.path, client=request.client)
        return encode_envelope(FAILURE, WRONG_TOKEN_MESSAGE, instance=self._instance)

    def _named(self, handler: Handler) -> Handler:
        async def named(request: WireRequest) -> bytes:
            try:
                return await handler(request)
            except MalformedMessageError as error:
                return self._malformed(request, error)

        return named

    def _malformed(self, request: WireRequest, error: MalformedMessageError) -> bytes:
        log.warning("executor.malformed_request", path=request.path, client=request.client, error=error.message)
        return encode_envelope(FAILURE, error.message, instance=self._instance)

    async def beat(self, _: WireRequest) -> bytes:
        return self._success

    async def idle_beat(self, request: WireRequest) -> bytes:
        job_id = decode(request.body, JobQuery).job_id
        if self._states.is_idle(job_id):
            return self._success
        return encode_envelope(FAILURE, f"job {job_id} is running or queued here", instance=self._instance)

    async def run(self, request: WireRequest) -> bytes:
        trigger = decode(request.body, TriggerRequest)
        _check_trigger(trigger)
        return self._reply(trigger, await self._gate.submit_one(trigger))

    async def run_batch(self, request: WireRequest) -> bytes:
        """Each run is answered as if it came alone. A reply of another code: none of them was taken."""
        items = [_checked(item) for item in decode_batch(request.body)]
        triggers = [item for item in items if isinstance(item, TriggerRequest)]
        replies = map(self._reply, triggers, await self._gate.submit_all(triggers))
        envelopes = [
            next(replies) if isinstance(item, TriggerRequest) else self._malformed(request, item) for item in items
        ]
        return encode_batch_reply(envelopes, instance=self._instance)

    def _reply(self, trigger: TriggerRequest, refusal: Refusal | None) -> bytes:
        if refusal is None:
            return self._success
        log.info("run.refused", job_id=trigger.job_id, log_id=trigger.log_id, reason=refusal.message)
        return encode_envelope(FAILURE, refusal.message, instance=self._instance, reason=refusal.reason)

    async def kill(self, request: WireRequest) -> bytes:
        """A success also if nothing of it is here; the message says what was ended."""
        query = decode(request.body, KillRequest)
        # Off the loop: of a long queue each run is settled on the disk.
        if isinstance(query.log_id, int):
            what = f"run {query.log_id}"
            ended = await self._disk.do(self._control.kill_run, query.log_id)
        else:
            what = f"job {query.job_id}"
            ended = await self._disk.do(self._control.kill_job, query.job_id)
        log.info("run.kill", what=what, ended=ended, client=request.client)
        message = f"{what}: {ended} ended" if ended else f"{what} is neither running nor queued here"
        return encode_envelope(SUCCESS, message, instance=self._instance)

    async def run_status(self, request: WireRequest) -> bytes:
        log_ids = decode(request.body, StatusQuery).log_ids
        states = await self._disk.do(self._states.of, log_ids)
        return encode_envelope(SUCCESS, value=states, instance=self._instance)

    async def log(self, request: WireRequest) -> bytes:
        query = decode_log_query(request.body)
        _check_run(query.log_id, query.log_date_time)
        # Off the loop: finding a late line of a big file takes a while.
        page = await self._disk.do(self._read_log, query)
        return encode_envelope(SUCCESS, value=page, instance=self._instance)

    def _read_log(self, query: LogQuery) -> LogPage:
        # Looked up before the file is read: what is written in between must not be missed.
        over = not self._states.is_open(query.log_id)
        path = self._folder.find(query.log_id, query.log_date_time)
        if path is None:
            return missing_page(query.from_line, query.log_id)
        try:
            return self._reader.read(path, query.from_line, over=over)
        except FileNotFoundError:
            return missing_page(query.from_line, query.log_id)


def _checked(item: TriggerRequest | MalformedMessageError) -> TriggerRequest | MalformedMessageError:
    if isinstance(item, TriggerRequest):
        try:
            _check_trigger(item)
        except MalformedMessageError as error:
            return error
    return item


def _check_trigger(trigger: TriggerRequest) -> None:
    _check_run(trigger.log_id, trigger.log_date_time)
    planned = trigger.scheduled_time
    if planned is not msgspec.UNSET and planned not in _INSTANTS_MS:
        # Here, where the run is refused by this name, and not when its handler reads it.
        raise MalformedMessageError("is out of range", field="scheduledTime")


def _check_run(log_id: int, log_date_time: int) -> None:
    if not -_MOST_LOG_ID <= log_id <= _MOST_LOG_ID:
        raise MalformedMessageError("is out of range", field="logId")
    if not is_storable(log_date_time):
        raise MalformedMessageError("is out of range", field="logDateTime")
