"""What the system knows of processes."""

from pathlib import Path


def is_alive(process_id: int) -> bool:
    """Whether there is such a process, and it is no zombie."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in {"Z", "X"}


def children_of(process_id: int) -> list[int]:
    """The processes that it has started and that are alive."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and is_alive(int(folder.name)):
            try:
                status = (folder / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(status.rpartition(")")[2].split()[1]) == process_id:
                found.append(int(folder.name))
    return found
