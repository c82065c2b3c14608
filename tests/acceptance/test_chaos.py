"""Clusters under faults: every planned instant is one execution, a recorded misfire, or a failure that says why.

JOBWHEEL_CHAOS_ROUNDS asks for the long form with so many rounds, JOBWHEEL_CHAOS_FAULTS names faults (comma separated).
"""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from jobwheel.admin.domain.run import Outcome, Run
from tests.support.checker import Verdict, judge
from tests.support.cluster import GREEN_WITHIN_S, Cluster, running_cluster
from tests.support.delayed_jobs import faults_of_delayed
from tests.support.faults import FAULTS, SHORT, Fault, long_form
from tests.support.report import record_verdict
from tests.support.scene import CLOCK, read_admin, read_starts, scheduled
from tests.support.servers import SERVER_KINDS, ServerMissingError, install

ROUNDS = int(os.environ.get("JOBWHEEL_CHAOS_ROUNDS", "0"))
FORM = long_form(ROUNDS) if ROUNDS else SHORT
CHOSEN = [name.strip() for name in os.environ.get("JOBWHEEL_CHAOS_FAULTS", "").split(",") if name.strip()]


@pytest.mark.process
@pytest.mark.timeout(420 + 240 * ROUNDS)
async def test_clusters_survive_every_fault(tmp_path: Path) -> None:
    """Both databases at once: most of it is waiting."""
    try:
        for kind in SERVER_KINDS:
            install(kind)
    except ServerMissingError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    migrating = asyncio.Lock()
    async with asyncio.TaskGroup() as group:
        proofs = [group.create_task(prove(kind, tmp_path / kind, migrating)) for kind in SERVER_KINDS]
    bad = [line for proof in proofs for line in proof.result()]
    assert not bad, "\n".join(bad)


async def prove(kind: str, folder: Path, migrating: asyncio.Lock) -> list[str]:
    """Inject one fault after the other; what was wrong, a line for each fault that was not survived."""
    bad = []
    async with running_cluster(kind, folder, migrating) as cluster:
        first_ms = begin_ms = await cluster.started()
        await cluster.green()
        rounds = 0
        for fault in [FAULTS[name] for name in CHOSEN] or FAULTS.values():
            recovery_s = await survive(cluster, fault)
            end_ms = await cluster.settled()
            rounds += fault.rounds(FORM)
            line, verdict = await judged(cluster, fault.name, begin_ms, end_ms)
            record_verdict(kind, fault.name, fault.rounds(FORM), verdict)
            line += f", green after {recovery_s:.1f} s"
            tell(line)
            wrong = [*wrongs(fault, verdict, recovery_s), *await faults_of_delayed(cluster, begin_ms)]
            bad += [f"seed {cluster.seed}: {line}: {', '.join(wrong)}"] if wrong else []
            begin_ms = end_ms
        line, verdict = await judged(cluster, "the whole time", first_ms, begin_ms)
        record_verdict(kind, "the whole time", rounds, verdict)
        tell(line)
    return bad if verdict.good else [*bad, line]


def wrongs(fault: Fault, verdict: Verdict, recovery_s: float) -> list[str]:
    """Why a fault was not survived; nothing if it was."""
    late = fault.latest_ms is not None and verdict.latest_ms >= fault.latest_ms
    checks = {
        "not good": not verdict.good,
        "nothing ran": not verdict.executed,
        f"not green within {GREEN_WITHIN_S} s": recovery_s > GREEN_WITHIN_S,
        f"a run began {fault.latest_ms} ms late or later": late,
    }
    return [name for name, holds in checks.items() if holds]


async def survive(cluster: Cluster, fault: Fault) -> float:
    """All rounds of a fault; after each the nodes have to be well again. How many seconds that took at most."""
    longest_s = 0.0
    for _ in range(fault.rounds(FORM)):
        await fault.inject(cluster, FORM)
        longest_s = max(longest_s, await cluster.green())
    return longest_s


async def judged(cluster: Cluster, name: str, begin_ms: int, end_ms: int) -> tuple[str, Verdict]:
    """The verdict on what was planned from `begin_ms` to before `end_ms`, and a line that tells it."""
    misfires, runs = await read_admin(cluster.scene, cluster.jobs, begin_ms)
    starts = await asyncio.to_thread(read_starts, cluster.scene.starts_path)
    planned = [(job_id, at_ms) for job_id in cluster.jobs for at_ms in range(begin_ms, end_ms, 1000)]
    excused = [(run.job_id, run.planned_ms or 0) for run in runs if _says_why(run)]
    starts = [start for start in starts if start.planned_ms >= begin_ms and start.job_id in cluster.jobs]
    verdict = judge(planned, starts, misfires, excused, scheduled(runs))
    # Both so far: what a woken node did not send any more, and what the executor was sent again and did not run again.
    dropped = await cluster.said("dispatcher.run_not_mine_any_more")
    refused = await cluster.said(" is known here already, and is not run again")
    return f"{cluster.server.kind}, {name}: {verdict}, not sent {dropped}, not run again {refused}", verdict


def _says_why(run: Run) -> bool:
    return run.outcome in (Outcome.FAILED, Outcome.LOST) and bool(run.trigger_message or run.handle_message)


def tell(line: str) -> None:
    sys.stdout.write(f"{CLOCK.now() // 1000} {line}\n")
    sys.stdout.flush()
