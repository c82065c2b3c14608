"""Checks of what people type."""

import unicodedata
from typing import Final

from jobwheel.admin.services.errors import InvalidFieldError
from jobwheel.wire.client_request import parse_target
from jobwheel.wire.errors import UnreachableError

# A path may stand behind the host, and the name of what is called behind that: nothing else. A comma would fall apart
# in the group's list.
_IN_NO_ADDRESS: Final = ',\\?#<>"'


def checked_text(field: str, text: str, most: int, *, least: int = 0, lines: bool = False) -> str:
    """The text itself, if it fits; a text that is too long is refused, never cut.

    Args:
        field: the name to blame.
        text: what was typed.
        most: the most characters.
        least: the fewest characters, without blanks around them.
        lines: whether line breaks and tabs may be in it.

    Raises:
        InvalidFieldError: it is too long, too short, or holds a character that no field may hold.
    """
    if len(text.strip()) < least:
        raise InvalidFieldError(field, "is required" if least == 1 else f"has less than {least} characters")
    if len(text) > most:
        raise InvalidFieldError(field, f"has {len(text)} characters, at most {most} are allowed")
    for character in text:
        if _is_forbidden(character, lines=lines):
            raise InvalidFieldError(field, f"holds the character U+{ord(character):04X}, which is not allowed")
    return text


def why_no_address(text: str) -> str | None:
    """Why a text cannot be where an executor is reached; None if it can.

    What the client would not send to is refused here, where somebody sees it, and not with the first run.
    """
    if any(character in text for character in _IN_NO_ADDRESS):
        return f"it holds one of {' '.join(_IN_NO_ADDRESS)}"
    try:
        parse_target(text)
    except UnreachableError as error:
        return error.reason
    return None


def _is_forbidden(character: str, *, lines: bool) -> bool:
    if character.isprintable() or (lines and character in "\r\n\t"):
        return False
    # Control characters, and halves of surrogate pairs, which no database can store.
    return unicodedata.category(character) in {"Cc", "Cs"}
