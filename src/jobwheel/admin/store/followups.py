"""What follows the end of runs, in the transaction of the end: retries, children, alarms that are due."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, String, bindparam, exists, func, select, update

from jobwheel.admin.domain.event import EventKind
from jobwheel.admin.domain.followup_words import FOLLOWED_BY, WORDS, FollowUpWords
from jobwheel.admin.domain.ids import GroupId, JobId, NodeId, RunId
from jobwheel.admin.domain.retries import RETRIED, EndedRun, RetryPolicy, goes_on, retry_of
from jobwheel.admin.domain.run import NewRun, Outcome, PendingRun
from jobwheel.admin.domain.writes import Ended, cut_message
from jobwheel.admin.store import alarm_outbox, chains
from jobwheel.admin.store.alarm_outbox import EndedForAlarm
from jobwheel.admin.store.held_jobs import HeldJobs
from jobwheel.admin.store.offspring import Child, Offspring, offspring_of
from jobwheel.admin.store.runs import insert_runs
from jobwheel.admin.store.tables import alarm_channel, job_info, job_log
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.schedule import Language

_MOST_LINE_BYTES = 4_000
"""A result's message has 60,000 bytes at most, and the smallest of the columns 65,535."""

_MARK = FOLLOWED_BY.strip("\n")

_IS_THERE_A_CHANNEL = select(exists(select(alarm_channel.c.id)))


@dataclass(frozen=True, slots=True)
class Before:
    """What was known before the runs ended.

    Attributes:
        held: the jobs that are held.
        lost: the runs that were lost already: whoever is to know that they did not succeed does.
    """

    held: HeldJobs
    lost: Collection[RunId] = frozenset()


@dataclass(frozen=True, slots=True)
class _Retry:
    run: EndedRun
    new: NewRun


def follow_up(
    connection: Connection,
    zone: InstallationZone,
    node_id: NodeId,
    ended: Sequence[Ended],
    before: Before,
    language: Language,
) -> list[PendingRun]:
    """Write what follows; return the runs that it made, which are the node's."""
    # Of a run that was lost and got its result in one batch, the result counts.
    last = {each.run_id: each for each in ended}
    failed = {each.run_id: each for each in last.values() if each.outcome is not Outcome.SUCCEEDED}
    parents = {run_id: each for run_id, each in last.items() if run_id not in failed and _is_parent(each, before.held)}
    retries = _follow_failures(connection, zone, node_id, failed, before.lost) if failed else ()
    started = chains.load_ended(connection, zone, parents) if parents else ()
    offspring = offspring_of(connection, node_id, started, before.held) if started else ()
    if not retries and not offspring:
        return []
    children = [child.run for each in offspring for child in each.children if child.run is not None]
    made = insert_runs(connection, zone, [*(each.new for each in retries), *children])
    _tell(connection, retries, offspring, made, WORDS[language])
    return made


def late_line(language: Language) -> str:
    """What a run's dispatch message says of a result that came when the run was lost already."""
    return f"{_MARK}{WORDS[language].late_result}\n"


def _is_parent(ended: Ended, held: HeldJobs) -> bool:
    return ended.job_id in held.children


def _follow_failures(
    connection: Connection,
    zone: InstallationZone,
    node_id: NodeId,
    failed: Mapping[RunId, Ended],
    lost: Collection[RunId],
) -> Sequence[_Retry]:
    """The retries of runs that did not succeed; alarms that are due are written."""
    alarming = connection.execute(_IS_THERE_A_CHANNEL).scalar_one()
    if not alarming and all(each.outcome not in RETRIED for each in failed.values()):
        return ()
    policies = _load_policies(connection, {each.job_id for each in failed.values()})
    # Of a job that is gone nothing follows.
    known = {run_id: each for run_id, each in failed.items() if each.job_id in policies}
    runs = chains.load_ended(connection, zone, known)
    if not alarming:
        runs = [run for run in runs if run.retries_left(policies[run.job_id])]
    tries = chains.load_tries(connection, runs)
    retries, alarms = [], []
    for run in runs:
        policy, chain = policies[run.job_id], tries.get(run.chain_id, ())
        new = retry_of(run, policy, chain, node_id)
        if new is not None:
            retries.append(_Retry(run, new))
        if alarming and run.id not in lost:
            alarms.append(_for_alarm(run, policy, is_final=new is None and not goes_on(run, chain)))
    alarm_outbox.note_ended(connection, alarms)
    return retries


def _load_policies(connection: Connection, job_ids: Collection[JobId]) -> Mapping[JobId, RetryPolicy]:
    rows = connection.execute(
        select(
            job_info.c.id,
            job_info.c.job_group,
            job_info.c.executor_fail_retry_count,
            job_info.c.retry_interval_s,
            job_info.c.retry_backoff,
            job_info.c.retry_most_s,
        ).where(job_info.c.id.in_(sorted(job_ids)))
    )
    return {
        JobId(row.id): RetryPolicy(
            GroupId(row.job_group),
            _number(row.executor_fail_retry_count),
            _number(row.retry_interval_s),
            row.retry_backoff,
            None if row.retry_most_s is None else _number(row.retry_most_s),
        )
        for row in rows
    }


def _number(stored: object) -> int:
    """SQLite stores a text in a column of numbers: what is none must not make a whole batch of results fail."""
    return stored if isinstance(stored, int) else 0


def _for_alarm(run: EndedRun, policy: RetryPolicy, *, is_final: bool) -> EndedForAlarm:
    return EndedForAlarm(run.id, run.job_id, policy.group_id, run.outcome, run.ended_ms, is_final, run.attempt)


def _tell(
    connection: Connection,
    retries: Sequence[_Retry],
    offspring: Sequence[Offspring],
    made: Sequence[PendingRun],
    words: FollowUpWords,
) -> None:
    """Add to the messages of the runs that ended what came of them."""
    ids = iter([run.id for run in made])
    results: list[tuple[RunId, str]] = []
    dispatches: list[tuple[RunId, str]] = []
    for retry in retries:
        line = _retry_line(retry, next(ids), words)
        (results if retry.run.has_result else dispatches).append((retry.run.id, line))
    for each in offspring:
        told = [_told(child, next(ids) if child.run is not None else None, words) for child in each.children]
        results.append((each.parent.id, words.children.format(words.comma.join(told))))
    _append(connection, "handle_msg", [(run_id, f"{FOLLOWED_BY}{_cut(line)}") for run_id, line in results])
    _append(connection, "trigger_msg", [(run_id, f"{_MARK}{_cut(line)}\n") for run_id, line in dispatches])


def _retry_line(retry: _Retry, run_id: RunId, words: FollowUpWords) -> str:
    wait_s = (retry.new.due_ms - retry.run.ended_ms) // 1000
    return words.retried_later.format(wait_s, run_id) if wait_s else words.retried_now.format(run_id)


def _told(child: Child, run_id: RunId | None, words: FollowUpWords) -> str:
    if run_id is not None:
        return words.child.format(child.job_id, run_id)
    is_gone = child.refusal is EventKind.RUN_CHILD_GONE
    return (words.child_gone if is_gone else words.child_refused).format(child.job_id)


def _cut(line: str) -> str:
    return cut_message(line, _MOST_LINE_BYTES)


def _append(connection: Connection, column: str, lines: Sequence[tuple[RunId, str]]) -> None:
    if not lines:
        return
    added = func.coalesce(job_log.c[column], "", type_=String) + bindparam("line", type_=String)
    statement = update(job_log).where(job_log.c.id == bindparam("run_id")).values({column: added})
    connection.execute(statement, [{"run_id": run_id, "line": line} for run_id, line in sorted(lines)])
