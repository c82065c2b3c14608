"""The body of `progress`."""

import msgspec

from jobwheel.wire.codec import decode
from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.items import judge_each
from jobwheel.wire.messages import Progress


def decode_progress(body: bytes) -> tuple[list[Progress], list[str]]:
    """How far runs are, and what is wrong with the items that do not tell it. Each item is judged alone.

    Raises:
        MalformedMessageError: the body as a whole is no list, or more than 10,000 of its items are bad.
    """
    return judge_each(decode(body, list[msgspec.Raw]), _progress)


def _progress(item: bytes) -> Progress:
    progress = decode(item, Progress)
    if not 0 <= progress.fraction <= 1:
        raise MalformedMessageError(f"{progress.fraction} is not between 0 and 1", field="fraction")
    return progress
