"""Admins on a database server are killed amid chains: each tree has its runs once, and each alarm is sent."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.support.chain_scene import chain_scene
from tests.support.report import record_verdict
from tests.support.rounds import rounds
from tests.support.run_servers import Servers
from tests.support.scene import CLOCK
from tests.support.servers import SERVER_KINDS

ROUNDS = rounds(1)


@pytest.mark.process
@pytest.mark.timeout(240 + 60 * ROUNDS)
@pytest.mark.parametrize(("first", "second"), [SERVER_KINDS])
async def test_each_tree_has_its_runs_once_and_each_alarm_is_sent(
    first: str, second: str, tmp_path: Path, servers: Servers
) -> None:
    """Both databases at once: most of it is waiting."""
    migrating = asyncio.Lock()
    async with asyncio.TaskGroup() as group:
        proofs = [
            group.create_task(prove(servers, kind, tmp_path / kind, migrating, begins_with_both=kind == second))
            for kind in (first, second)
        ]
    bad = [line for proof in proofs for line in proof.result()]
    assert not bad, "\n".join(bad)


async def prove(
    servers: Servers, kind: str, folder: Path, migrating: asyncio.Lock, *, begins_with_both: bool
) -> list[str]:
    """One of the nodes is killed, and in every other round both at once; what was wrong."""
    database = "jobwheel_chains"
    statements = (f"DROP DATABASE IF EXISTS {database}", f"CREATE DATABASE {database}")
    await servers.run_here(kind, *statements)
    server = servers.running[kind]
    async with chain_scene(server, server.url(database), folder, migrating) as chains:
        for number in range(ROUNDS):
            await chains.round(both=(number + begins_with_both) % 2 == 1)
        await chains.settled()
        verdict, wrong = await chains.judged()
        told = chains.told
    record_verdict(kind, "node killed amid chains", ROUNDS, verdict)
    line = (
        f"{kind}: {ROUNDS} rounds, {chains.kills} kills, {chains.trees} trees: {verdict}; open at the kills "
        f"{dict(chains.met)}; alarms waiting then {chains.alarms_met}, sent {told.total()} of {len(told)}"
    )
    sys.stdout.write(f"{CLOCK.now() // 1000} {line}\n")
    return [] if verdict.good and not wrong else [line, *wrong]
