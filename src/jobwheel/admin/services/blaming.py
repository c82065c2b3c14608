"""Errors in a document name the part of it that they are about."""

import contextlib
from collections.abc import Iterator

from jobwheel.kernel.errors import JobwheelError

_FIELDS = {"child_job_ids": "children"}


@contextlib.contextmanager
def blaming(place: str, name: str) -> Iterator[None]:
    """Let an error name the part of the document that it is about."""
    try:
        yield
    except JobwheelError as error:
        ours = _FIELDS.get(error.field or "")
        if ours is not None:
            error.message = error.message.replace(f"{error.field}: ", f"{ours}: ", 1)
            error.field = ours
        if not error.message.startswith(("jobs[", "groups[")):
            named = error.field is None or error.message.startswith(error.field)
            error.message = f"{place} ({name}): {'' if named else f'{error.field}: '}{error.message}"
            error.field = f"{place}.{error.field}" if error.field else place
        raise
