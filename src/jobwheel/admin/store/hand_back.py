"""Handing the database back to a Java admin: what it holds of ours alone, and letting go of open runs."""

from dataclasses import dataclass

from sqlalchemy import Connection, String, func, select, update

from jobwheel.admin.domain.run import Outcome, Phase
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.group_tokens import read_tokens
from jobwheel.admin.store.tables import SCHEDULE_LOCK, alarm_channel, api_token, job_group, job_log, job_user
from jobwheel.admin.store.zone import InstallationZone


@dataclass(frozen=True, slots=True)
class OpenRuns:
    """How many runs wait to be sent, and how many an executor has or may have."""

    pending: int
    under_way: int


@dataclass(frozen=True, slots=True)
class OnlyOurs:
    """What no Java admin knows: groups with tokens by app name, users by name, and how many of what else."""

    groups_with_tokens: tuple[str, ...]
    users: tuple[str, ...]
    alarm_channels: int
    api_tokens: int


def count_open_runs(connection: Connection) -> OpenRuns:
    """Runs that are not done."""
    counted = select(job_log.c.phase, func.count()).where(job_log.c.phase.is_not(None)).group_by(job_log.c.phase)
    counts = {row[0]: row[1] for row in connection.execute(counted)}
    pending = counts.pop(Phase.PENDING, 0)
    return OpenRuns(pending, sum(counts.values()))


def read_only_ours(connection: Connection) -> OnlyOurs:
    """What a Java admin would not find, or not take."""
    groups = select(job_group.c.app_name, job_group.c.access_tokens).order_by(job_group.c.app_name)
    # Who has a password of ours has none of the reference's.
    users = select(job_user.c.username).where(job_user.c.password_hash.is_not(None)).order_by(job_user.c.username)
    return OnlyOurs(
        tuple(row.app_name for row in connection.execute(groups) if read_tokens(row.access_tokens)),
        tuple(connection.execute(users).scalars()),
        connection.execute(select(func.count()).select_from(alarm_channel)).scalar_one(),
        connection.execute(select(func.count()).select_from(api_token)).scalar_one(),
    )


def hold_schedule(connection: Connection) -> None:
    """Let no admin plan anything until the transaction ends."""
    statements(connection).wait_for_lock(connection, SCHEDULE_LOCK)


def let_go(connection: Connection, zone: InstallationZone, ended_ms: int, message: str) -> OpenRuns:
    """Leave no run that only an admin of ours would look after; `message` is for those that were not sent.

    Those end as killed. What an executor has, or may have, is to the other admin a run of its own that runs.
    """
    theirs = update(job_log).where(job_log.c.phase.in_([Phase.SENDING, Phase.UNCONFIRMED, Phase.ACCEPTED]))
    left = {"phase": None, "owner": None, "check_ms": None, "trigger_code": 200, "handle_code": 0}
    under_way = connection.execute(theirs.values(left)).rowcount
    told = func.coalesce(job_log.c.trigger_msg, "", type_=String) + f"{message}\n"
    ended = {
        "phase": None,
        "owner": None,
        "check_ms": None,
        "outcome": Outcome.KILLED,
        "ended_ms": ended_ms,
        "trigger_code": 0,
        "trigger_msg": told,
        "handle_code": 500,
        "handle_msg": message,
        "handle_time": zone.to_wall(ended_ms),
        # None is needed: nothing has failed.
        "alarm_status": 1,
    }
    pending = connection.execute(update(job_log).where(job_log.c.phase == Phase.PENDING).values(ended)).rowcount
    return OpenRuns(pending, under_way)
