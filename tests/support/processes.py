"""Looks at processes that are not this one's children."""

import os
from pathlib import Path

from tests.support.recording_admin import wait_until


def is_alive(process_id: int) -> bool:
    """Whether the process runs: one that has ended and waits to be reaped does not."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def group_members(group_id: int) -> list[int]:
    """The running processes of a process group."""
    members = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                in_group = os.getpgid(int(entry.name)) == group_id
            except ProcessLookupError:
                continue
            if in_group and is_alive(int(entry.name)):
                members.append(int(entry.name))
    return members


def wait_for_numbers(file: Path, count: int) -> list[int]:
    """The numbers that somebody writes into a file, one a line, once there are so many."""
    wait_until(lambda: file.exists() and file.read_text().count("\n") >= count)
    return [int(line) for line in file.read_text().split()]
