"""Instants as the API spells them: RFC 3339, UTC, milliseconds."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final, overload

from jobwheel.admin.services.errors import InvalidFieldError
from jobwheel.kernel.instants import instant_text

_FORM: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:[0-5]\d)",
    re.ASCII,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# In UTC, as all are told: an offset behind it leads beyond.
_END_MS: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_EXAMPLE: Final = "2026-11-27T02:30:00.000Z"


@overload
def to_text(instant_ms: int) -> str: ...
@overload
def to_text(instant_ms: int | None) -> str | None: ...
def to_text(instant_ms: int | None) -> str | None:
    """`2026-11-27T02:30:00.000Z` for epoch milliseconds."""
    return None if instant_ms is None else instant_text(instant_ms)


@overload
def from_text(field: str, text: str) -> int: ...
@overload
def from_text(field: str, text: str | None) -> int | None: ...
def from_text(field: str, text: str | None) -> int | None:
    """Epoch milliseconds of an RFC 3339 instant with any offset; what is finer is cut.

    Raises:
        InvalidFieldError: another form, no such date, before 1970, after 9999.
    """
    if text is None:
        return None
    # In a query a "+" that was not escaped arrives as a blank.
    match = _FORM.fullmatch(re.sub(r" (?=\d\d:[0-5]\d$)", "+", text) if text.count(":") > 2 else text)
    if match is None:
        raise InvalidFieldError(field, f"{text[:50]!r} is not an instant such as {_EXAMPLE}")
    date, time, fraction, offset = match.groups()
    try:
        whole = datetime.fromisoformat(f"{date}T{time}{'+00:00' if offset in 'Zz' else offset}")
        instant_ms = (whole - _EPOCH) // timedelta(milliseconds=1) + int((fraction or "0").ljust(3, "0")[:3])
    except (ValueError, OverflowError) as error:
        raise InvalidFieldError(field, f"{text[:50]!r} is not an instant: {error}") from error
    if instant_ms < 0:
        raise InvalidFieldError(field, f"{text[:50]!r} is before 1970")
    if instant_ms > _END_MS:
        raise InvalidFieldError(field, f"{text[:50]!r} is after 9999 in UTC")
    return instant_ms
