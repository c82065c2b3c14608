"""`/runBatch`: many runs in one request, spoken between an admin and an executor of ours."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec

from jobwheel.wire.codec import decode, encode_envelope, envelope_value
from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.messages import SUCCESS, Envelope, TriggerRequest

BATCH_PATH: Final = "/runBatch"
MOST_IN_BATCH: Final = 1000
"""More runs than this in one request are refused, all of them."""

Item = TypeVar("Item")


def encode_batch(requests: Sequence[TriggerRequest]) -> bytes:
    """Runs as one body. That they are `MOST_IN_BATCH` and `MAX_BODY_BYTES` at most is the caller's part."""
    return msgspec.json.encode(requests)


def decode_batch(body: bytes) -> list[TriggerRequest | MalformedMessageError]:
    """The runs of a body, in its order. Each is judged alone: what is wrong with one stands in its place.

    Raises:
        MalformedMessageError: the body is no array, or has more than `MOST_IN_BATCH` items.
    """
    return _items(body, TriggerRequest, _check_size)


def encode_batch_reply(envelopes: Sequence[bytes], *, instance: str | None = None) -> bytes:
    """The reply to a batch: the encoded envelope of each run, in the order of the request."""
    return encode_envelope(SUCCESS, value=[msgspec.Raw(envelope) for envelope in envelopes], instance=instance)


def decode_batch_reply(envelope: Envelope, count: int) -> list[Envelope | MalformedMessageError]:
    """The envelopes that the reply to a batch of `count` runs carries, in the order of the request.

    Each is judged alone, as the runs are.

    Raises:
        MalformedMessageError: the reply carries no array, or one of another length: nothing says which run is meant.
    """

    def check_size(size: int) -> None:
        if size != count:
            raise MalformedMessageError(f"expected {count} envelopes, got {size}", field="data")

    return _items(bytes(envelope_value(envelope, msgspec.Raw)), Envelope, check_size)


def _check_size(size: int) -> None:
    if size > MOST_IN_BATCH:
        raise MalformedMessageError(f"a batch has at most {MOST_IN_BATCH} runs, and this one {size}")


def _items(body: bytes, item_type: type[Item], check_size: Callable[[int], None]) -> list[Item | MalformedMessageError]:
    try:
        # The usual case in one pass: ten times faster than one by one.
        items = msgspec.json.decode(body, type=list[item_type])  # type: ignore[valid-type]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raws = decode(body, list[msgspec.Raw])
        # Before any is looked at: a body of bad ones would take minutes, and gigabytes.
        check_size(len(raws))
        return [_item(bytes(raw), item_type) for raw in raws]
    check_size(len(items))
    return [*items]


def _item(body: bytes, item_type: type[Item]) -> Item | MalformedMessageError:
    try:
        return decode(body, item_type)
    except MalformedMessageError as error:
        return error
