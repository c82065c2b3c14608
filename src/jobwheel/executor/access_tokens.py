"""The tokens in an executor's settings."""

from collections.abc import Sequence
from pathlib import Path

from jobwheel.executor.errors import SettingError
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.secret import Secret

log = get_logger(__name__)

_WEAK_TOKENS = frozenset({"default_token", "123456"})


def parse_tokens(setting: str, value: object) -> tuple[Secret, ...]:
    """Tokens as they are set: a text with commas between them, or a list.

    Raises:
        SettingError: one cannot be sent; does not show it.
    """
    parts = value.split(",") if isinstance(value, str) else value
    if isinstance(parts, bytes) or not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
        raise SettingError(setting, "***", "a text or a list of texts")
    tokens = []
    for part in parts:
        if any(ord(character) < 33 or ord(character) > 126 for character in part.strip()):
            raise SettingError(setting, "***", "made of visible ASCII characters")
        if part.strip() in _WEAK_TOKENS:
            log.warning("executor.weak_token", setting=setting, advice="choose a long random one")
        if part.strip():
            tokens.append(Secret(part.strip()))
    return tuple(tokens)


def read_tokens(setting: str, path: Path) -> tuple[Secret, ...]:
    """The tokens in a file, each on a line of its own; at least one.

    Raises:
        SettingError: there is none, or the file cannot be read; shows nothing of it.
    """
    try:
        tokens = parse_tokens(setting, path.read_text().split())
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(setting, path, "a text file that can be read") from error
    if not tokens:
        raise SettingError(setting, path, "a file with a token in it")
    return tokens
