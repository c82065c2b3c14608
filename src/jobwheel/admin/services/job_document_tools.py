"""What documents of jobs are made true with: by whom, how far, and by which use cases."""

from dataclasses import dataclass
from enum import Enum, auto

from jobwheel.admin.services.groups import Groups
from jobwheel.admin.services.jobs import Jobs
from jobwheel.admin.services.scripts import Scripts
from jobwheel.admin.store.zone import InstallationZone


@dataclass(frozen=True, slots=True)
class Tools:
    """The use cases that write, and the installation's zone. The groups that exist are those that do for `jobs`."""

    jobs: Jobs
    scripts: Scripts
    groups: Groups
    zone: InstallationZone


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, for the events, and whether he may make and change scripts."""

    name: str
    may_script: bool = True


class Scope(Enum):
    """How far a document goes."""

    WHOLE = auto()
    """All jobs of its groups, whose rows are held."""
    TRIAL = auto()
    """The same to be rolled back: no row is held but those that would be changed."""
    ALONE = auto()
    """Its only job is all that is looked at, and errors need not say which one they are about."""
