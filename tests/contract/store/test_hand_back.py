"""Letting go of a database that an admin of XXL-JOB gets back, on each kind of database."""

import pytest
from sqlalchemy import select, update

from jobwheel.admin.domain.ids import NodeId, RunId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.domain.writes import Accepted, Settlement, Unconfirmed
from jobwheel.admin.services.errors import HandBackRefusedError
from jobwheel.admin.services.hand_back import HandBack
from jobwheel.admin.store.hand_back import OpenRuns
from jobwheel.admin.store.settings_table import ZONE as ZONE_SETTING
from jobwheel.admin.store.settings_table import write_setting
from jobwheel.admin.store.tables import event, node
from tests.support.store import INSTANCE, NOW_MS, ZONE, Store


async def installed(store: Store) -> HandBack:
    await store.database.write(write_setting, ZONE_SETTING, ZONE)
    return HandBack(store.database, store.clock)


async def stop_all(store: Store) -> None:
    """Every node beat for the last time a minute ago."""
    long_ago_ms = store.database.now_ms() - 60_000
    await store.database.write(lambda c: c.execute(update(node).values(heartbeat_ms=long_ago_ms)))


async def runs_of_every_phase(store: Store, owner: NodeId) -> dict[str, RunId]:
    job_id = await store.job()
    (pending,) = await store.pending(owner, job_id=job_id)
    (nobodys,) = await store.pending(None, job_id=job_id)
    sending, accepted, doubtful, done = [await store.sending(owner, job_id=job_id) for _ in range(4)]
    await store.apply(
        owner,
        Accepted(accepted, NOW_MS + 10, INSTANCE, "accepted\n", NOW_MS, NOW_MS + 120_000),
        Unconfirmed(doubtful, NOW_MS + 20, NOW_MS + 10_020, "no answer\n"),
        Settlement(done, NOW_MS + 900, 200, Outcome.SUCCEEDED, "done"),
    )
    return {
        "pending": pending.id,
        "nobodys": nobodys.id,
        "sending": sending,
        "accepted": accepted,
        "doubtful": doubtful,
        "done": done,
    }


async def test_open_runs_are_ended_or_left_to_the_other_admin(store: Store) -> None:
    hand_back, owner = await installed(store), await store.node()
    run_ids = await runs_of_every_phase(store, owner)
    done = await store.run_row(run_ids["done"])
    await stop_all(store)
    report = await hand_back.report()
    assert (report.open_runs, report.zone, report.hosts, report.grave) == (OpenRuns(2, 3), ZONE, [], 0)
    if store.database.kind == "sqlite":
        with pytest.raises(HandBackRefusedError, match="SQLite"):
            await hand_back.carry_out(accept_losses=True)
        assert (await hand_back.report()).open_runs == OpenRuns(2, 3)
        return
    assert await hand_back.carry_out(accept_losses=False) == OpenRuns(2, 3)
    assert (await hand_back.report()).open_runs == OpenRuns(0, 0)
    for name in ("pending", "nobodys"):
        row = await store.run_row(run_ids[name])
        assert (row["outcome"], row["trigger_code"], row["handle_code"], row["alarm_status"]) == ("killed", 0, 500, 1)
        assert "handed back" in row["handle_msg"]
        assert row["trigger_msg"] == f"{row['handle_msg']}\n"
    for name in ("sending", "accepted", "doubtful"):
        row = await store.run_row(run_ids[name])
        assert (row["outcome"], row["trigger_code"], row["handle_code"], row["alarm_status"]) == (None, 200, 0, 0)
        assert (row["phase"], row["owner"], row["check_ms"]) == (None, None, None)
    assert await store.run_row(run_ids["done"]) == done
    # Whoever hears of one of them writes its result, an admin of ours too.
    await store.apply(owner, Settlement(run_ids["accepted"], NOW_MS + 900, 500, Outcome.FAILED, "no such file"))
    assert (await store.run_row(run_ids["accepted"]))["outcome"] == "failed"
    events = await store.database.read(lambda c: c.execute(select(event.c.kind, event.c.actor)).all())
    assert ("installation.handed_back", "operator") in [tuple(row) for row in events]


async def test_while_an_admin_runs_nothing_is_handed_back(store: Store) -> None:
    hand_back = await installed(store)
    owner = await store.node()
    now_ms = store.database.now_ms()
    await store.database.write(lambda c: c.execute(update(node).values(heartbeat_ms=now_ms)))
    (run,) = await store.pending(owner)
    assert (await hand_back.report()).hosts == ["host-1"]
    with pytest.raises(HandBackRefusedError):
        await hand_back.carry_out(accept_losses=True)
    assert (await store.run_row(run.id))["phase"] == "pending"


async def test_what_would_be_lost_must_be_accepted(store: Store) -> None:
    hand_back = await installed(store)
    job_id = await store.job(time_zone="UTC", run_limit=2, tags="night", trigger_status=0)
    await store.job()
    await store.group(
        access_tokens='{"next_id": 2, "tokens": [{"id": 1, "token": "x", "created_by": "a", "created_ms": 1}]}'
    )
    await store.group("billing", access_tokens='{"next_id": 2, "tokens": []}')
    report = await hand_back.report()
    assert [(each.job_id, each.running) for each in report.jobs] == [(job_id, False)]
    assert [loss.what for loss in report.jobs[0].losses] == ["time_zone", "run_limit", "tags"]
    assert [loss.what for loss in report.installation if loss.is_grave] == ["tokens of the group orders"]
    assert report.grave == 3
    with pytest.raises(HandBackRefusedError):
        await hand_back.carry_out(accept_losses=False)
    if store.database.kind != "sqlite":
        assert await hand_back.carry_out(accept_losses=True) == OpenRuns(0, 0)
