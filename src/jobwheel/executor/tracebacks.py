"""What user code raised, as its run's log and message show it."""

import multiprocessing.spawn
import traceback
from asyncio import base_events, events, runners
from pathlib import Path
from typing import Final

_OURS: Final = str(Path(__file__).parent)
# What else leads to user code, and says nothing about it.
_LEADING: Final = frozenset(
    {runners.__file__, base_events.__file__, events.__file__, multiprocessing.spawn.__file__, "<frozen runpy>"},
)


def traceback_of(error: BaseException) -> str:
    """The traceback from the first line of user code on."""
    frames = error.__traceback__
    while frames is not None and leads_to_user_code(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames or error.__traceback__)).rstrip()


def leads_to_user_code(file_name: str) -> bool:
    """Whether a frame of this file says nothing about the user code that it has called."""
    return file_name in _LEADING or file_name.startswith(_OURS)


def last_line_of(error: BaseException) -> str:
    """What stands below the traceback: the error's kind and words, or the last line of those."""
    lines = "".join(traceback.format_exception_only(error)).strip().splitlines()
    return lines[-1] if lines else type(error).__name__
