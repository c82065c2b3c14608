"""The admin's side of the executor API: what an answer means, and which dialect an address speaks."""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from jobwheel.admin.engine.executor_answers import (
    GATEWAY_STATUSES,
    NOT_SENT,
    Answer,
    AnswerKind,
    answer_because,
    answer_of,
    batch_answers,
    is_unknown_path,
    to_all,
    without_reply,
)
from jobwheel.kernel.secret import Secret
from jobwheel.wire.batch import BATCH_PATH, MOST_IN_BATCH, encode_batch
from jobwheel.wire.client import WireClient, WireReply, join_url
from jobwheel.wire.codec import decode_envelope, encode, envelope_value
from jobwheel.wire.dialects import RUN_PATH, encode_log_query
from jobwheel.wire.errors import MalformedMessageError, UncertainError, UnreachableError
from jobwheel.wire.messages import (
    APP_NAME_HEADER,
    MAX_BODY_BYTES,
    TOKEN_HEADER,
    WRONG_TOKEN_MESSAGE,
    Dialect,
    JobQuery,
    KillRequest,
    LogPage,
    LogQuery,
    RunStatus,
    StatusQuery,
    TriggerRequest,
)
from jobwheel.wire.why import Why

_MOST_LEARNT = 10_000
_SINGLY_AT_ONCE = 32
_MOST_ANSWER_BYTES = 256 * 1024
"""Of the answer to a run or a question; to a batch four times that.

What is no JSON takes much longer to look at than what is, and nothing else happens meanwhile: seconds at 10 MiB.
"""


class Statuses(msgspec.Struct, frozen=True, gc=False):
    """Where runs are, as the process `instance_id` says; a run that it leaves out it said nothing of."""

    instance_id: str | None
    by_run: dict[int, RunStatus]


class ExecutorClient:
    """Speaks to executors over the keep-alive client; remembers which addresses speak dialect C."""

    def __init__(self, wire: WireClient, access_token: Secret | None, timeout_s: float) -> None:
        self._wire = wire
        self._access_token = access_token
        self._timeout_s = timeout_s
        # What answers have taught goes before what registrations say.
        self._learnt: dict[str, Dialect] = {}
        self._is_newer: Callable[[str], bool] = lambda _address: False
        self._choose: Callable[[str, str, Secret | None], Secret | None] = lambda _app, _address, token: token

    def use_tokens(self, choose: Callable[[str, str, Secret | None], Secret | None]) -> None:
        """Ask `choose` which token an address of an app name gets; it is given the installation's."""
        self._choose = choose

    def use_registrations(self, is_newer: Callable[[str], bool]) -> None:
        """Ask `is_newer` whether an address that was never sent a run is known to speak dialect C."""
        self._is_newer = is_newer

    async def run(self, address: str, app_name: str, request: TriggerRequest) -> Answer:
        """Send a run and say what became of it. Never raises for what the network or the peer does."""
        body = encode(request)
        dialect = self._dialect(address)
        other = Dialect.B if dialect is Dialect.C else Dialect.C
        try:
            reply = await self._post(address, RUN_PATH[dialect], app_name, body)
            if is_unknown_path(reply, RUN_PATH[dialect]):
                # Never heard of, or replaced by one of the other age since it was learnt.
                reply = await self._post(address, RUN_PATH[other], app_name, body)
                if not is_unknown_path(reply, RUN_PATH[other]):
                    self._learn(address, other)
        except (UnreachableError, UncertainError) as error:
            return without_reply(error)
        return answer_of(reply, request.log_id)

    async def run_batch(self, address: str, app_name: str, requests: Sequence[TriggerRequest]) -> list[Answer]:
        """Send runs in one request, and say of each, in their order, what became of it. Never raises, as `run`.

        An address that turns out not to know batches gets them one by one. What is too large for one request goes in
        several at once, and then the executor may queue the runs of one job in another order than theirs.
        """
        if not requests:
            return []
        body = encode_batch(requests)
        if len(requests) > MOST_IN_BATCH or (len(requests) > 1 and len(body) > MAX_BODY_BYTES):
            half = len(requests) // 2
            parts = (self.run_batch(address, app_name, part) for part in (requests[:half], requests[half:]))
            return [answer for answers in await asyncio.gather(*parts) for answer in answers]
        return await self._send_batch(address, app_name, requests, body)

    async def _send_batch(
        self, address: str, app_name: str, requests: Sequence[TriggerRequest], body: bytes
    ) -> list[Answer]:
        began_s = self._wire.clock.monotonic()
        try:
            reply = await self._post(address, BATCH_PATH, app_name, body, 4 * _MOST_ANSWER_BYTES)
        except (UnreachableError, UncertainError) as error:
            return to_all(requests, without_reply(error))
        answers = batch_answers(reply, requests)
        return answers or await self._run_singly(address, app_name, requests, began_s + self._timeout_s)

    async def _run_singly(
        self, address: str, app_name: str, requests: Sequence[TriggerRequest], until_s: float
    ) -> list[Answer]:
        """Send runs one by one, some at once, begun before `until_s` by the monotonic clock.

        Bounded, since the caller saw before the first that the runs are its own: later, others may have them.
        """
        answers: list[Answer] = []
        while len(answers) < len(requests):
            if self._wire.clock.monotonic() > until_s:
                return answers + to_all(requests[len(answers) :], NOT_SENT)
            part = requests[len(answers) : len(answers) + _SINGLY_AT_ONCE]
            answers += await asyncio.gather(*(self.run(address, app_name, request) for request in part))
        return answers

    def _learn(self, address: str, dialect: Dialect) -> None:
        if len(self._learnt) >= _MOST_LEARNT:
            self._learnt.clear()
        self._learnt[address] = dialect

    def _dialect(self, address: str) -> Dialect:
        learnt = self._learnt.get(address)
        if learnt is not None:
            return learnt
        return Dialect.C if self._is_newer(address) else Dialect.B

    async def beat(self, address: str, app_name: str) -> Answer:
        """Ask whether the executor is alive: ACCEPTED is yes, any other kind no. Never raises, as `run`."""
        return await self._probe(address, "/beat", app_name, b"")

    async def idle_beat(self, address: str, app_name: str, query: JobQuery) -> Answer:
        """Ask whether no run of the job runs or waits there: ACCEPTED is yes, REJECTED no. Never raises, as `run`."""
        return await self._probe(address, "/idleBeat", app_name, encode(query))

    async def is_idle(self, address: str, app_name: str, query: JobQuery) -> bool | None:
        """Whether no run of the job runs or waits there; None without a readable answer."""
        answer = await self.idle_beat(address, app_name, query)
        if answer.kind in (AnswerKind.UNREACHABLE, AnswerKind.UNCONFIRMED) or answer.message == WRONG_TOKEN_MESSAGE:
            # Who does not take our token tells nothing of the job.
            return None
        return answer.kind is AnswerKind.ACCEPTED

    async def kill(self, address: str, app_name: str, request: KillRequest) -> Answer:
        """Have an executor end a run, or all of a job: ACCEPTED is that it does. Never raises, as `run`."""
        return await self._probe(address, "/kill", app_name, encode(request))

    async def statuses(self, address: str, app_name: str, run_ids: Sequence[int]) -> Statuses | None:
        """Ask an executor of ours where runs are; None without a readable answer. Never raises, as `run`."""
        body = encode(StatusQuery(list(run_ids)))
        try:
            reply = await self._post(address, "/runStatus", app_name, body, 4 * _MOST_ANSWER_BYTES)
            envelope = decode_envelope(reply.body)
            if not envelope.ok or reply.status in GATEWAY_STATUSES:
                return None
            return Statuses(envelope.instance, envelope_value(envelope, dict[int, RunStatus]))
        except (UnreachableError, UncertainError, MalformedMessageError):
            return None

    async def _probe(self, address: str, path: str, app_name: str, body: bytes) -> Answer:
        try:
            reply = await self._post(address, path, app_name, body)
        except (UnreachableError, UncertainError) as error:
            return without_reply(error)
        if is_unknown_path(reply, path):
            return answer_because(AnswerKind.UNCONFIRMED, Why.UNKNOWN_PATH.because(reply.status, path))
        return answer_of(reply)

    async def read_log(self, address: str, app_name: str, query: LogQuery) -> LogPage:
        """Lines of a run's log.

        Raises:
            UnreachableError: the executor cannot be reached.
            UncertainError: it gave no answer.
            MalformedMessageError: it gave no page of a log.
        """
        dialect = self._dialect(address)
        reply = await self._post(address, "/log", app_name, encode_log_query(query, dialect), MAX_BODY_BYTES)
        envelope = decode_envelope(reply.body)
        if not envelope.ok:
            raise MalformedMessageError(f"{address} answered {envelope.code}: {envelope.msg}")
        return envelope_value(envelope, LogPage)

    async def _post(
        self, address: str, path: str, app_name: str, body: bytes, most_bytes: int = _MOST_ANSWER_BYTES
    ) -> WireReply:
        headers = {APP_NAME_HEADER: app_name}
        token = self._choose(app_name, address, self._access_token)
        if token is not None:
            headers[TOKEN_HEADER] = token.reveal()
        return await self._wire.post(join_url(address, path), body, headers, self._timeout_s, most_bytes)
