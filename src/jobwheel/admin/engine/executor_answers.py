"""What an executor's answer means."""

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

import msgspec

from jobwheel.wire.batch import BATCH_PATH, decode_batch_reply
from jobwheel.wire.client import WireReply
from jobwheel.wire.codec import decode_envelope
from jobwheel.wire.dialects import decode_callbacks
from jobwheel.wire.errors import MalformedMessageError, UncertainError, UnreachableError
from jobwheel.wire.messages import MOST_INSTANCE, SUCCESS, Envelope, Reason, TriggerRequest
from jobwheel.wire.why import Cause, Why

GATEWAY_STATUSES: Final = (502, 503, 504)
"""What proxies answer in the place of an executor."""
_MOST_SHOWN = 80


class AnswerKind(Enum):
    """What became of a run that was sent (`behaviour.md`, What an executor's answer means)."""

    ACCEPTED = auto()
    STOPPING = auto()
    REJECTED = auto()
    UNREACHABLE = auto()
    UNCONFIRMED = auto()


class Answer(msgspec.Struct, frozen=True, gc=False):
    """An executor's answer to a run. `code` is the envelope's, 500 without one.

    `message` is the executor's own, or the system's; where it is ours `cause` is the same in any language.
    """

    kind: AnswerKind
    code: int
    message: str
    instance_id: str | None = None
    reason: str | None = None
    cause: Cause | None = None

    @property
    def discarded(self) -> bool:
        """Whether the blocking policy or a full queue refused the run."""
        if self.reason is not None:
            return self.reason in (Reason.BLOCKED, Reason.FULL)
        return self.message.startswith("block strategy effect") and "Discard Later" in self.message


NOT_SENT: Final = Answer(AnswerKind.UNREACHABLE, 500, "not sent: the runs before it took too long")
"""To a run of a batch that its turn did not come to: the address may well be there, and nobody has asked it."""


def is_unknown_path(reply: WireReply, path: str) -> bool:
    """Whether an executor has never heard of a path."""
    if reply.status in (404, 405):
        return True
    return f"uri-mapping({path}) not found".encode() in reply.body


def without_reply(error: UnreachableError | UncertainError) -> Answer:
    """What no reply means."""
    kind = AnswerKind.UNREACHABLE if isinstance(error, UnreachableError) else AnswerKind.UNCONFIRMED
    return Answer(kind, 500, error.reason, cause=error.cause)


def answer_because(kind: AnswerKind, cause: Cause) -> Answer:
    """What a reply means that is no answer."""
    return Answer(kind, 500, str(cause), cause=cause)


def to_all(requests: Sequence[TriggerRequest], answer: Answer) -> list[Answer]:
    """The same answer for each run."""
    return [answer] * len(requests)


def batch_answers(reply: WireReply, requests: Sequence[TriggerRequest]) -> list[Answer]:
    """What became of each run; nothing if the executor knows no batches, and has taken none of them."""
    if reply.status in (404, 405):
        return []
    if reply.status in GATEWAY_STATUSES:
        return to_all(requests, _of_a_proxy(reply))
    try:
        envelope = decode_envelope(reply.body)
        if not envelope.ok:
            # In the reply's own message alone: what it carries may quote anything, and then runs were taken.
            unknown = f"uri-mapping({BATCH_PATH}) not found" in (envelope.msg or "")
            # Refused as a whole: an executor of ours has taken none of them.
            return [] if unknown else to_all(requests, _of_envelope(envelope))
        items = decode_batch_reply(envelope, len(requests))
    except MalformedMessageError as error:
        return to_all(requests, _unreadable(reply, error))
    return [
        _unreadable(reply, item) if isinstance(item, MalformedMessageError) else _of_envelope(item) for item in items
    ]


def answer_of(reply: WireReply, run_id: int | None = None) -> Answer:
    """What the reply to one run (then `run_id` is its id), or to one question, means."""
    if reply.status in GATEWAY_STATUSES:
        return _of_a_proxy(reply)
    try:
        return _of_envelope(decode_envelope(reply.body))
    except MalformedMessageError as error:
        answer = None if run_id is None else _of_a_result(reply.body, run_id)
        if answer is not None:
            return answer
        if reply.status in (404, 405):
            return answer_because(AnswerKind.REJECTED, Why.NEITHER_PATH.because(reply.status))
        return _unreadable(reply, error)


def _of_a_result(body: bytes, run_id: int) -> Answer | None:
    """What a callback in the place of an envelope says of the run: executors in Go refuse runs in this way."""
    try:
        results = decode_callbacks(body).results
    except MalformedMessageError:
        return None
    if [result.log_id for result in results] != [run_id]:
        return None
    kind = AnswerKind.ACCEPTED if results[0].code == SUCCESS else AnswerKind.REJECTED
    return Answer(kind, results[0].code, results[0].message or "")


def _of_a_proxy(reply: WireReply) -> Answer:
    # Whatever it says, a proxy says it: the executor behind it may have taken the run.
    return answer_because(AnswerKind.UNCONFIRMED, Why.PROXY.because(reply.status))


def _unreadable(reply: WireReply, error: MalformedMessageError) -> Answer:
    # A proxy's page, or half an answer: the executor behind it may have taken the run.
    if 300 <= reply.status < 400:
        cause = Why.ELSEWHERE.because(reply.status)
    elif not reply.body.strip():
        cause = Why.EMPTY.because(reply.status)
    else:
        cause = Why.UNREADABLE.because(reply.status, error.message, _beginning(reply.body))
    return answer_because(AnswerKind.UNCONFIRMED, cause)


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
