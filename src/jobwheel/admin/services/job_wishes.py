"""Jobs as files and other systems want them, and what a wish does to what is stored."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from jobwheel.admin.domain.group import Group
from jobwheel.admin.domain.ids import ChannelId, JobId
from jobwheel.admin.domain.job import Job, JobAddress
from jobwheel.admin.domain.script import Script

MOST_JOBS: Final = 1000
"""How many jobs a document may hold: they are written in one transaction."""


@dataclass(frozen=True, slots=True)
class JobWish:
    """A job as it shall be.

    Attributes:
        address: which one.
        given: all settings by the names of the use cases, the script's fields among them, but for what `address`,
            `children` and `running` say. An anchor that is not given stays as it is, and so does a script.
        children: the jobs that it triggers.
        channels: the names of the channels of its alarms, whose ids `given` leaves out.
        running: whether its schedule runs; None = as it is, stopped for a new one.
    """

    address: JobAddress
    given: Mapping[str, Any]
    children: tuple[JobAddress, ...] = ()
    running: bool | None = None
    channels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobDocument:
    """Jobs as they shall be, and the groups that they are in.

    Attributes:
        groups: fields of groups by the names of the use cases; those that are there already are not changed.
        jobs: the jobs.
        delete_missing: whether other jobs of these groups are deleted. Those without a key are nobody's business here.
    """

    groups: Sequence[Mapping[str, Any]]
    jobs: Sequence[JobWish]
    delete_missing: bool = False


class Action(StrEnum):
    """What is done with a job."""

    CREATE = "create"
    CHANGE = "change"
    UNCHANGED = "unchanged"
    DELETE = "delete"
    MISSING = "missing"
    """It is stored and not in the document, and stays."""


@dataclass(frozen=True, slots=True)
class JobState:
    """A job with what belongs to it. `script` is None for a job that runs a handler."""

    job: Job
    script: Script | None


@dataclass(frozen=True, slots=True)
class JobChange:
    """What is done with one job: how it was (None: it was not), how it is (None: it is gone)."""

    address: JobAddress
    action: Action
    before: JobState | None
    after: JobState | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Names:
    """What documents call the things that jobs name by ids; those that are gone are not in it."""

    children: Mapping[JobId, JobAddress] = field(default_factory=dict)
    channels: Mapping[ChannelId, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Changes:
    """What a document does.

    Attributes:
        fingerprint: of the document and of what was stored; with another one something else would be done.
        new_groups: app names of the groups that are made.
        jobs: in the order of the document, then those that are not in it.
        names: what is called by what in them.
    """

    fingerprint: str
    new_groups: Sequence[str]
    jobs: Sequence[JobChange]
    names: Names


@dataclass(frozen=True, slots=True)
class Export:
    """Groups and their jobs, and what is called by what in them."""

    groups: Sequence[Group]
    jobs: Sequence[tuple[JobAddress, JobState]]
    names: Names


def children_first(document: JobDocument, stored: Container[JobAddress]) -> Iterator[JobWish]:
    """The jobs that are not stored yet, children before their parents as far as there is no circle."""
    wishes = {wish.address: wish for wish in document.jobs}
    seen: set[JobAddress] = set()
    for first in document.jobs:
        stack = [(first, False)]
        while stack:
            wish, has_children_made = stack.pop()
            if has_children_made:
                yield wish
            elif wish.address not in seen and wish.address not in stored:
                seen.add(wish.address)
                stack.append((wish, True))
                stack += [(wishes[child], False) for child in wish.children if child in wishes]
