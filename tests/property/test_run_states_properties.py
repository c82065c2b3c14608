"""Whatever is written of a run in whatever order keeps to the arrows of its life."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, select

from jobwheel.admin.domain.ids import NodeId, RunId
from jobwheel.admin.domain.run import LEAVES, Outcome, Phase, outcome_of_result
from jobwheel.admin.domain.writes import (
    Accepted,
    Cancelled,
    RunWrite,
    Settlement,
    TakeBack,
    Unanswered,
    Unconfirmed,
    Unsent,
)
from jobwheel.admin.store import checks, kills, nodes, run_log, runs, schema
from jobwheel.admin.store.checks import CheckLater
from jobwheel.admin.store.sqlite_connections import open_engine
from jobwheel.admin.store.tables import job_log
from jobwheel.admin.store.zone import InstallationZone
from tests.support.store import FIRST_LOOKS, NOW_MS, ZONE, new_run, take_off

ME, HEIR = NodeId(1), NodeId(2)
_NODES = st.sampled_from([ME, HEIR])
_CODES = st.sampled_from([200, 500, 502, 7])


@dataclass(frozen=True, slots=True)
class TakesOff:
    node: NodeId


@dataclass(frozen=True, slots=True)
class Redirects:
    node: NodeId


@dataclass(frozen=True, slots=True)
class Adopts:
    node: NodeId


@dataclass(frozen=True, slots=True)
class Releases:
    node: NodeId


@dataclass(frozen=True, slots=True)
class TakesBack:
    node: NodeId


@dataclass(frozen=True, slots=True)
class Looks:
    pass


@dataclass(frozen=True, slots=True)
class AsksKill:
    pass


@dataclass(frozen=True, slots=True)
class Writes:
    """A batch of the run log's writer: what kinds of writes, in the order in which they were put in."""

    node: NodeId
    kinds: list[tuple[str, int]]


_KINDS = ["accepted", "unconfirmed", "rejected", "rejected by owner", "lost", "unanswered", "cancelled", "result"]
_WRITES = st.tuples(st.sampled_from(_KINDS), _CODES)
_STEPS = st.one_of(
    st.builds(TakesOff, _NODES),
    st.builds(Redirects, _NODES),
    st.builds(Adopts, _NODES),
    st.builds(Releases, _NODES),
    st.builds(TakesBack, _NODES),
    st.builds(Looks),
    st.builds(AsksKill),
    st.builds(Writes, _NODES, st.lists(_WRITES, min_size=1, max_size=3)),
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    path = tmp_path_factory.mktemp("states") / "jobwheel.db"
    opened = open_engine(path)
    with opened.begin() as connection:
        schema.prepare(connection, "test")
    with opened.connect() as connection:
        # A test loses nothing in a power cut.
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("PRAGMA synchronous=OFF")
    yield opened
    opened.dispose()


def _write(run_id: RunId, kind: str, code: int) -> RunWrite:
    if kind == "accepted":
        return Accepted(run_id, NOW_MS, None, "accepted\n", NOW_MS, NOW_MS + 120_000)
    if kind == "unconfirmed":
        return Unconfirmed(run_id, NOW_MS, NOW_MS + 10_000, "unconfirmed\n")
    if kind == "result":
        return Settlement(run_id, NOW_MS, code, outcome_of_result(code), f"result {code}")
    if kind == "unanswered":
        return Unanswered(run_id, NOW_MS, "nobody is there")
    if kind == "cancelled":
        return Cancelled(run_id, NOW_MS, "killed before it was sent")
    outcome = Outcome.LOST if kind == "lost" else Outcome.FAILED
    return Unsent(run_id, NOW_MS, 500, outcome, f"{kind}\n", ME if kind == "rejected by owner" else None)


def _do(connection: Connection, run_id: RunId, step: object) -> None:
    zone = InstallationZone(ZONE)
    match step:
        case TakesOff(node):
            run_log.take_off(connection, node, NOW_MS, [take_off(run_id)])
        case Redirects(node):
            run_log.redirect(connection, node, [(take_off(run_id, None, "http://b/"), "http://10.0.0.7:9999/")])
        case Adopts(node):
            nodes.adopt_all(connection, node, NOW_MS, FIRST_LOOKS)
        case Releases(node):
            runs.release_pending(connection, node)
        case TakesBack(node):
            run_log.take_back(connection, [TakeBack(run_id, node, NOW_MS)])
        case Looks():
            due = checks.due_checks(connection, NOW_MS + 10**9, 10)
            checks.check_later(connection, [CheckLater(run.id, run.check_ms, run.check_ms + 1) for run in due])
        case AsksKill():
            if _state(connection, run_id)["phase"] is not None:
                kills.ask_kill(connection, [run_id], NOW_MS, "kill\n")
        case Writes(node, kinds):
            run_log.apply(connection, zone, node, [_write(run_id, kind, code) for kind, code in kinds])


def _state(connection: Connection, run_id: RunId) -> dict[str, Any]:
    return dict(connection.execute(select(job_log).where(job_log.c.id == run_id)).one()._mapping)


def _check_state(row: dict[str, Any]) -> None:
    phase, outcome = row["phase"], row["outcome"]
    codes = (row["trigger_code"], row["handle_code"])
    assert (phase is None) == (outcome is not None)
    if phase is not None:
        assert codes == (0, 0)
    elif row["handle_msg"] in ("nobody is there", "killed before it was sent"):
        assert codes == ((200, 500) if row["handle_msg"] == "nobody is there" else (0, 500))
        assert outcome == (Outcome.LOST if row["kill_ms"] is None else Outcome.KILLED)
    elif outcome == Outcome.KILLED and codes[0] != 200:
        assert codes == (0, 500)
        assert row["kill_ms"] is not None
    elif outcome in (Outcome.LOST, Outcome.FAILED) and row["handle_code"] == 0:
        assert codes == (500, 0)
    else:
        assert codes[0] == 200
        killed = row["kill_ms"] is not None and outcome == Outcome.KILLED
        assert killed or outcome == outcome_of_result(codes[1])
    assert (row["owner"] is None) or phase in (Phase.PENDING, Phase.SENDING)
    assert (row["owner"] is not None) or phase != Phase.SENDING
    looked_after = (Phase.UNCONFIRMED, Phase.ACCEPTED, *([] if row["kill_ms"] is None else [Phase.PENDING]))
    assert (row["check_ms"] is not None) == (phase in looked_after)


def _check_arrows(before: dict[str, Any], after: dict[str, Any], writes: int) -> None:
    if before["phase"] is None:
        if before["outcome"] != Outcome.LOST:
            kept = ("phase", "outcome", "trigger_code", "handle_code", "handle_msg", "ended_ms")
            assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
        return
    reachable: set[Phase | None] = {Phase(before["phase"])}
    for _ in range(writes):
        reachable |= {to for phase in reachable if phase is not None for to in LEAVES[phase]}
    assert after["phase"] in reachable
    if before["phase"] == Phase.PENDING and before["kill_ms"] is not None:
        assert after["phase"] in (Phase.PENDING, None)


@settings(max_examples=120, deadline=None)
@given(steps=st.lists(_STEPS, max_size=14))
def test_any_row_of_writes_keeps_to_the_arrows(engine: Engine, steps: list[object]) -> None:
    with engine.connect() as connection, connection.begin() as transaction:
        run_id = runs.insert_runs(connection, InstallationZone(ZONE), [new_run(ME)])[0].id
        before = _state(connection, run_id)
        for step in steps:
            _do(connection, run_id, step)
            after = _state(connection, run_id)
            _check_state(after)
            _check_arrows(before, after, len(step.kinds) if isinstance(step, Writes) else 1)
            before = after
        transaction.rollback()


@settings(max_examples=60, deadline=None)
@given(codes=st.lists(_CODES, min_size=1, max_size=6), lost_first=st.booleans(), batch=st.booleans())
def test_the_first_result_wins_also_over_lost(engine: Engine, codes: list[int], lost_first: bool, batch: bool) -> None:
    zone = InstallationZone(ZONE)
    with engine.connect() as connection, connection.begin() as transaction:
        run_id = runs.insert_runs(connection, zone, [new_run(ME)])[0].id
        run_log.take_off(connection, ME, NOW_MS, [take_off(run_id)])
        if lost_first:
            run_log.apply(connection, zone, ME, [_write(run_id, "lost", 0)])
        writes = [_write(run_id, "result", code) for code in codes]
        ended = 0
        for part in [writes] if batch else [[write] for write in writes]:
            ended += len(run_log.apply(connection, zone, ME, part).ended)
        row = _state(connection, run_id)
        assert (row["trigger_code"], row["handle_code"], row["handle_msg"]) == (200, codes[0], f"result {codes[0]}")
        assert row["outcome"] == outcome_of_result(codes[0])
        assert ended == 1
        transaction.rollback()
