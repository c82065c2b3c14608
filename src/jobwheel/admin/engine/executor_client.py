"""The admin's side of the executor API: what an answer means, and which dialect an address speaks."""

import asyncio
from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

import msgspec

from jobwheel.kernel.secret import Secret
from jobwheel.wire.batch import BATCH_PATH, MOST_IN_BATCH, decode_batch_reply, encode_batch
from jobwheel.wire.client import WireClient, WireReply, join_url
from jobwheel.wire.codec import decode_envelope, encode, envelope_value
from jobwheel.wire.dialects import RUN_PATH, encode_log_query
from jobwheel.wire.errors import MalformedMessageError, UncertainError, UnreachableError
from jobwheel.wire.messages import (
    APP_NAME_HEADER,
    MAX_BODY_BYTES,
    MOST_INSTANCE,
    TOKEN_HEADER,
    Dialect,
    Envelope,
    JobQuery,
    LogPage,
    LogQuery,
    Reason,
    TriggerRequest,
)

_GATEWAY_STATUSES = (502, 503, 504)
_MOST_LEARNT = 10_000
_SINGLY_AT_ONCE = 32
_MOST_SHOWN = 80
_MOST_ANSWER_BYTES = 256 * 1024
"""Of the answer to a run or a question; to a batch four times that.

What is no JSON takes much longer to look at than what is, and nothing else happens meanwhile: seconds at 10 MiB.
"""


class AnswerKind(Enum):
    """What became of a run that was sent (`behaviour.md`, What an executor's answer means)."""

    ACCEPTED = auto()
    STOPPING = auto()
    REJECTED = auto()
    UNREACHABLE = auto()
    UNCONFIRMED = auto()


class Answer(msgspec.Struct, frozen=True, gc=False):
    """An executor's answer to a run. `code` is the envelope's, 500 without one."""

    kind: AnswerKind
    code: int
    message: str
    instance_id: str | None = None
    reason: str | None = None

    @property
    def discarded(self) -> bool:
        """Whether the blocking policy or a full queue refused the run."""
        if self.reason is not None:
            return self.reason in (Reason.BLOCKED, Reason.FULL)
        return self.message.startswith("block strategy effect") and "Discard Later" in self.message


NOT_SENT: Final = Answer(AnswerKind.UNREACHABLE, 500, "not sent: the runs before it took too long")
"""To a run of a batch that its turn did not come to: the address may well be there, and nobody has asked it."""


class ExecutorClient:
    """Speaks to executors over the keep-alive client; remembers which addresses speak dialect C."""

    def __init__(self, wire: WireClient, access_token: Secret | None, timeout_s: float) -> None:
        self._wire = wire
        self._access_token = access_token
        self._timeout_s = timeout_s
        self._newer: set[str] = set()

    async def run(self, address: str, app_name: str, request: TriggerRequest) -> Answer:
        """Send a run and say what became of it. Never raises for what the network or the peer does."""
        body = encode(request)
        dialect = Dialect.C if address in self._newer else Dialect.B
        other = Dialect.B if dialect is Dialect.C else Dialect.C
        try:
            reply = await self._post(address, RUN_PATH[dialect], app_name, body)
            if _unknown_path(reply, RUN_PATH[dialect]):
                # Never heard of, or replaced by one of the other age since it was learnt.
                reply = await self._post(address, RUN_PATH[other], app_name, body)
                if not _unknown_path(reply, RUN_PATH[other]):
                    self._learn(address, other)
        except (UnreachableError, UncertainError) as error:
            return _without_reply(error)
        return _answer(reply)

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
            return _all(requests, _without_reply(error))
        answers = _batch_answers(reply, requests)
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
                return answers + _all(requests[len(answers) :], NOT_SENT)
            part = requests[len(answers) : len(answers) + _SINGLY_AT_ONCE]
            answers += await asyncio.gather(*(self.run(address, app_name, request) for request in part))
        return answers

    def _learn(self, address: str, dialect: Dialect) -> None:
        if dialect is Dialect.B:
            self._newer.discard(address)
            return
        if len(self._newer) >= _MOST_LEARNT:
            self._newer.clear()
        self._newer.add(address)

    async def beat(self, address: str, app_name: str) -> Answer:
        """Ask whether the executor is alive: ACCEPTED is yes, any other kind no. Never raises, as `run`."""
        return await self._probe(address, "/beat", app_name, b"")

    async def idle_beat(self, address: str, app_name: str, query: JobQuery) -> Answer:
        """Ask whether no run of the job runs or waits there: ACCEPTED is yes, REJECTED no. Never raises, as `run`."""
        return await self._probe(address, "/idleBeat", app_name, encode(query))

    async def is_idle(self, address: str, app_name: str, query: JobQuery) -> bool | None:
        """Whether no run of the job runs or waits there; None without a readable answer."""
        kind = (await self.idle_beat(address, app_name, query)).kind
        return None if kind in (AnswerKind.UNREACHABLE, AnswerKind.UNCONFIRMED) else kind is AnswerKind.ACCEPTED

    async def _probe(self, address: str, path: str, app_name: str, body: bytes) -> Answer:
        try:
            reply = await self._post(address, path, app_name, body)
        except (UnreachableError, UncertainError) as error:
            return _without_reply(error)
        if _unknown_path(reply, path):
            return Answer(AnswerKind.UNCONFIRMED, 500, f"HTTP {reply.status}: it does not know {path}")
        return _answer(reply)

    async def read_log(self, address: str, app_name: str, query: LogQuery) -> LogPage:
        """Lines of a run's log.

        Raises:
            UnreachableError: the executor cannot be reached.
            UncertainError: it gave no answer.
            MalformedMessageError: it gave no page of a log.
        """
        dialect = Dialect.C if address in self._newer else Dialect.B
        reply = await self._post(address, "/log", app_name, encode_log_query(query, dialect), MAX_BODY_BYTES)
        envelope = decode_envelope(reply.body)
        if not envelope.ok:
            raise MalformedMessageError(f"{address} answered {envelope.code}: {envelope.msg}")
        return envelope_value(envelope, LogPage)

    async def _post(
        self, address: str, path: str, app_name: str, body: bytes, most_bytes: int = _MOST_ANSWER_BYTES
    ) -> WireReply:
        headers = {APP_NAME_HEADER: app_name}
        if self._access_token is not None:
            headers[TOKEN_HEADER] = self._access_token.reveal()
        return await self._wire.post(join_url(address, path), body, headers, self._timeout_s, most_bytes)


def _unknown_path(reply: WireReply, path: str) -> bool:
    if reply.status in (404, 405):
        return True
    return f"uri-mapping({path}) not found".encode() in reply.body


def _without_reply(error: UnreachableError | UncertainError) -> Answer:
    kind = AnswerKind.UNREACHABLE if isinstance(error, UnreachableError) else AnswerKind.UNCONFIRMED
    return Answer(kind, 500, error.reason)


def _all(requests: Sequence[TriggerRequest], answer: Answer) -> list[Answer]:
    return [answer] * len(requests)


def _batch_answers(reply: WireReply, requests: Sequence[TriggerRequest]) -> list[Answer]:
    """What became of each run; nothing if the executor knows no batches, and has taken none of them."""
    if reply.status in (404, 405):
        return []
    if reply.status in _GATEWAY_STATUSES:
        return _all(requests, _of_a_proxy(reply))
    try:
        envelope = decode_envelope(reply.body)
        if not envelope.ok:
            # In the reply's own message alone: what it carries may quote anything, and then runs were taken.
            unknown = f"uri-mapping({BATCH_PATH}) not found" in (envelope.msg or "")
            # Refused as a whole: an executor of ours has taken none of them.
            return [] if unknown else _all(requests, _of_envelope(envelope))
        items = decode_batch_reply(envelope, len(requests))
    except MalformedMessageError as error:
        return _all(requests, _unreadable(reply, error))
    return [
        _unreadable(reply, item) if isinstance(item, MalformedMessageError) else _of_envelope(item) for item in items
    ]


def _answer(reply: WireReply) -> Answer:
    if reply.status in _GATEWAY_STATUSES:
        return _of_a_proxy(reply)
    try:
        return _of_envelope(decode_envelope(reply.body))
    except MalformedMessageError as error:
        if reply.status in (404, 405):
            return Answer(AnswerKind.REJECTED, 500, f"HTTP {reply.status}: it knows neither /run nor /trigger")
        return _unreadable(reply, error)


def _of_a_proxy(reply: WireReply) -> Answer:
    # Whatever it says, a proxy says it: the executor behind it may have taken the run.
    return Answer(AnswerKind.UNCONFIRMED, 500, f"a proxy answered HTTP {reply.status}")


def _unreadable(reply: WireReply, error: MalformedMessageError) -> Answer:
    # A proxy's page, or half an answer: the executor behind it may have taken the run.
    if 300 <= reply.status < 400:
        what = f"HTTP {reply.status}: it points elsewhere, where runs are not sent; give the executor's own address"
    elif not reply.body.strip():
        what = f"an empty answer (HTTP {reply.status})"
    else:
        what = f"unreadable answer (HTTP {reply.status}): {error.message}; it begins {_beginning(reply.body)}"
    return Answer(AnswerKind.UNCONFIRMED, 500, what)


def _beginning(body: bytes) -> str:
    text = body[:_MOST_SHOWN].decode(errors="replace")
    return "".join(each if each.isprintable() else " " for each in text)


def _of_envelope(envelope: Envelope) -> Answer:
    instance_id = envelope.instance
    if instance_id is not None and not (len(instance_id) <= MOST_INSTANCE and instance_id.isprintable()):
        # No id of ours, and nothing that every database can store.
        instance_id = None
    return Answer(_kind(envelope), envelope.code, envelope.msg or "", instance_id, envelope.reason)


def _kind(envelope: Envelope) -> AnswerKind:
    if envelope.ok or envelope.reason == Reason.REPEATED:
        return AnswerKind.ACCEPTED
    return AnswerKind.STOPPING if envelope.reason == Reason.STOPPING else AnswerKind.REJECTED
