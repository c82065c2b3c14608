"""Addresses that are none, or a thousand at which nobody is: the run says so, and everyone else is on time."""

import re

import pytest
from sqlalchemy import func, insert, select

from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.policies import RouteStrategy
from jobwheel.admin.domain.run import Outcome, Phase, Run
from jobwheel.admin.store.tables import job_group, job_log, job_registry
from tests.support.bad_peers import black_hole, fixed_group, group, loopbacks, on_time, register
from tests.support.due_runs import all_done, write_due
from tests.support.http_peer import HttpPeer, unused_port
from tests.support.live_admin import CLOCK, LiveAdmin, seen, until

pytestmark = pytest.mark.timeout(40)

IMPATIENT = pytest.mark.parametrize("send_timeout_s", [0.5])
"""Where nobody answers, or takes a connection; on a busy machine an executor needs more."""

_ASKING = {"FAILOVER", "BUSYOVER", "SHARDING_BROADCAST"}
UNFIT = "it is empty, or holds a space, a control character or one outside ASCII"
NO_ADDRESSES = {
    "not a url": UNFIT,
    "http://": "it names no host",
    "http://host:99999/": "it is no URL",
    "http://host:many/": "it is no URL",
    "http://host:0/": "port 0",
    "ftp://host/": "it must begin with http:// or https://",
    "host:9999": "it must begin with http:// or https://",
    "http://user:pw@host/": "credentials in a URL are not sent",
    "http://h\u00f6st:9999/": UNFIT,
    "http://\u4e3b\u673a:9999/": UNFIT,
    "http://ho st:9999/": UNFIT,
    "http://host\x07:9999/": UNFIT,
    "http://[::1:9999/": "it is no URL",
    "http://ho*st:9999/": "its host holds a character that no host name has",
}
OUT = "no live address: each of the fixed list"
TOO_LONG = f"http://{'h' * 505}"


async def ended(live: LiveAdmin, job: Job) -> Run:
    """A run of the job, triggered and done."""
    return await live.done(await live.trigger(job), 20)


async def test_a_fixed_list_of_what_is_no_address_says_so_of_each(live: LiveAdmin) -> None:
    async with on_time(live), live.executor() as executor:
        await fixed_group(live, "lame", list(NO_ADDRESSES))
        await fixed_group(live, "halt", [TOO_LONG, *NO_ADDRESSES, executor.address])
        lame, told = {}, {}
        for strategy in ("FIRST", "FAILOVER", "BUSYOVER"):
            lame[strategy] = await live.job(app_name="lame", route_strategy=strategy)
            live.admin.engine.addresses._out.clear()
            run = await ended(live, lame[strategy])
            assert (run.outcome, run.trigger_code, run.handle_code) == (Outcome.FAILED, 500, 0)
            told[strategy] = run.trigger_message or ""
            for address, why in NO_ADDRESSES.items():
                assert f"{address} unreachable (code 500): {why}" in told[strategy]
            run = await ended(live, lame[strategy])
            assert f"{OUT} ({', '.join(NO_ADDRESSES)}) was unreachable less than 30 s ago" in (
                run.trigger_message or ""
            )
            live.admin.engine.addresses._out.clear()
            run = await ended(live, await live.job(app_name="halt", route_strategy=strategy))
            assert (run.outcome, run.executor_address) == (Outcome.SUCCEEDED, executor.address)
        assert told["FIRST"].endswith("no address could be reached\n")
        assert told["FAILOVER"].endswith("no address that was asked said yes\n")
        assert len(executor.runs()) == 3


async def test_so_does_a_broadcast_to_them(live: LiveAdmin) -> None:
    async with live.executor() as executor:
        await fixed_group(live, "halt", [*NO_ADDRESSES, executor.address])
        job = await live.job(app_name="halt", route_strategy="SHARDING_BROADCAST")
        await live.trigger(job)
        total = len(NO_ADDRESSES) + 1
        await seen(lambda: _count(live, job, total))
        *bad, good = await all_done(live, job)
        assert (good.outcome, good.executor_address) == (Outcome.SUCCEEDED, executor.address)
        for index, (run, (address, why)) in enumerate(zip(bad, NO_ADDRESSES.items(), strict=True)):
            assert (run.outcome, run.executor_address) == (Outcome.FAILED, address)
            assert f"shard: {index}/{total}\n{address} unreachable (code 500): {why}" in (run.trigger_message or "")


async def test_a_fixed_list_with_nothing_to_try_says_so(live: LiveAdmin) -> None:
    for number, addresses in enumerate(([], [TOO_LONG], [" ", ""])):
        await fixed_group(live, f"lame-{number}", addresses)
        run = await ended(live, await live.job(app_name=f"lame-{number}"))
        assert (run.outcome, run.trigger_code) == (Outcome.FAILED, 500)
        assert "the fixed list of the job's group holds none of 1 to 255 characters" in (run.trigger_message or "")


async def test_what_is_no_address_cannot_register(live: LiveAdmin) -> None:
    async with live.executor() as executor:
        for address, why in {**NO_ADDRESSES, TOO_LONG: "has more than 255", "http://h/?x": "it holds one of"}.items():
            answer = await executor.post("registry", {**executor.registration(), "registryValue": address})
            assert answer["code"] == 500, address
            assert "registryValue" in answer["msg"]
            assert why in answer["msg"]
            assert "pw" not in answer["msg"]
    count = select(func.count()).select_from(job_registry)
    assert await live.admin.database.read(lambda c: c.execute(count).scalar_one()) == 0


async def test_what_another_admin_let_register_is_passed_over(live: LiveAdmin) -> None:
    async with on_time(live), live.executor(app_name="motley") as executor:
        await executor.register()
        await register(live, "motley", *NO_ADDRESSES)
        job = await live.job(app_name="motley", route_strategy="ROUND")
        runs = [await ended(live, job) for _ in range(len(NO_ADDRESSES) + 1)]
        assert {(run.outcome, run.executor_address) for run in runs} == {(Outcome.SUCCEEDED, executor.address)}
        assert len(executor.runs()) == len(runs)


async def test_a_group_just_made_or_changed_gets_its_runs_at_once(live: LiveAdmin) -> None:
    groups = live.admin.services.groups
    async with live.executor() as one, live.executor() as two:
        made = {"app_name": "fresh", "title": "fresh", "address_type": "fixed", "addresses": [one.address]}
        group_id = (await groups.create(made, actor="test")).group.id
        job = await live.job(app_name="fresh")
        assert (await ended(live, job)).executor_address == one.address
        await groups.update(group_id, {"addresses": [two.address]}, version=None, actor="test")
        assert (await ended(live, job)).executor_address == two.address
        assert (len(one.runs()), len(two.runs())) == (1, 1)


async def test_a_group_that_another_node_has_just_made_gets_its_runs_at_once(live: LiveAdmin) -> None:
    async with live.executor() as executor:
        columns = {"app_name": "fresh", "title": "", "address_type": 1, "address_list": executor.address}
        await live.admin.database.write(lambda c: c.execute(insert(job_group).values(columns)))
        assert (await ended(live, await live.job(app_name="fresh"))).outcome is Outcome.SUCCEEDED


async def test_registered_addresses_that_are_all_out_are_named(live: LiveAdmin) -> None:
    dead = loopbacks(3, unused_port())
    await group(live, "gone")
    await register(live, "gone", *dead)
    job = await live.job(app_name="gone")
    await ended(live, job)
    told = f"no live address: each that is registered ({', '.join(dead)}) was unreachable, and has not beaten since"
    assert told in ((await ended(live, job)).trigger_message or "")


async def _count(live: LiveAdmin, job: Job, count: int) -> bool:
    query = select(func.count()).select_from(job_log).where(job_log.c.job_id == job.id)
    return await live.admin.database.read(lambda c: c.execute(query).scalar_one()) == count


def sent(peer: HttpPeer) -> list[str]:
    return [asked.request_line for asked in peer.requests if "/run " in asked.request_line]


@pytest.mark.parametrize("kind", ["fixed", "registered"])
async def test_of_a_thousand_addresses_those_that_work_get_the_runs(live: LiveAdmin, kind: str) -> None:
    strategies = ("ROUND", "FAILOVER", "BUSYOVER", "SHARDING_BROADCAST")
    async with on_time(live), HttpPeer(host="0.0.0.0") as peer:
        alive, closed = loopbacks(10, peer.port, 9), unused_port()
        jobs = {}
        for number, strategy in enumerate(strategies):
            app_name, dead = f"many-{number}", loopbacks(990, closed, number + 1)
            # One in a hundred works, whether the order is the list's own or that of the texts.
            listed = [each for at, one in enumerate(alive) for each in (*dead[99 * at : 99 * at + 99], one)]
            if kind == "fixed":
                await fixed_group(live, app_name, listed)
            else:
                await group(live, app_name)
                await register(live, app_name, *listed)
            jobs[strategy] = await live.job(app_name=app_name, route_strategy=strategy)
        for strategy in strategies[:3]:
            run_id = await live.trigger(jobs[strategy])
            run = await live.run_when(run_id, lambda run: run.phase is not Phase.PENDING and bool(run.accepted_ms), 20)
            assert run.executor_address in alive, strategy
            assert f"{run.executor_address} accepted" in (run.trigger_message or "")
        job = jobs["SHARDING_BROADCAST"]
        await live.trigger(job)
        await seen(lambda: _count(live, job, 1000), 20)

        async def told() -> list[Run] | None:
            runs = await live.runs(job)
            return None if any(run.phase is Phase.SENDING for run in runs) else runs

        runs = await seen(told, 20)
        assert {run.executor_address for run in runs if run.phase is Phase.ACCEPTED} == set(alive)
        failed = [run for run in runs if run.outcome is Outcome.FAILED]
        assert {run.executor_address for run in failed} == set(dead)
        for run in failed:
            assert f"{run.executor_address} unreachable (code 500): " in (run.trigger_message or "")
        assert sorted(str(run.shard) for run in runs) == sorted(f"{index}/1000" for index in range(1000))
        assert len(sent(peer)) == 3 + len(alive)


async def test_a_thousand_addresses_that_refuse_leave_room_for_how_it_ended(live: LiveAdmin) -> None:
    await fixed_group(live, "gone", loopbacks(1000, unused_port()))
    async with on_time(live):
        run = await ended(live, await live.job(app_name="gone", route_strategy="FAILOVER"))
    message = run.trigger_message or ""
    assert (run.outcome, len(message.encode()) <= 60_000) == (Outcome.FAILED, True)
    assert "… cut: " in message
    assert message.endswith("no address that was asked said yes\n")


@IMPATIENT
async def test_hundreds_of_addresses_that_swallow_everything_hold_nobody_else_up(live: LiveAdmin) -> None:
    with black_hole() as port:
        await fixed_group(live, "shards", loopbacks(400, port))
        await fixed_group(live, "asked", loopbacks(400, port, 2))
        broadcast = await live.job(app_name="shards", route_strategy="SHARDING_BROADCAST")
        asking = await live.job(app_name="asked", route_strategy="FAILOVER")
        for job in (broadcast, asking):
            await write_due(live, job, 1 if job is broadcast else 300)
        fast = live.admin.engine.launcher.lanes[0]
        await until(lambda: fast.in_use >= 150)
        async with on_time(live):
            await until(lambda: len(live.admin.engine.addresses._out) > 100, 20)
        # Not one of them has been forgotten.
        assert await _count(live, asking, 300)
        assert await _count(live, broadcast, 400)


@IMPATIENT
async def test_a_run_is_not_asked_for_at_a_thousand_addresses_that_swallow_everything(live: LiveAdmin) -> None:
    with black_hole() as port:
        await fixed_group(live, "asked", loopbacks(1000, port))
        began_s = CLOCK.monotonic()
        run = await ended(live, await live.job(app_name="asked", route_strategy="FAILOVER"))
    # Ten times the send time-out, and what the last question took.
    assert 4 < CLOCK.monotonic() - began_s < 12
    assert run.outcome is Outcome.FAILED
    last = (run.trigger_message or "").splitlines()[-1]
    assert re.fullmatch(r"no address that was asked within 5 s said yes, and 9[0-9]{2} more were not asked", last)


@IMPATIENT
async def test_an_address_that_was_found_unreachable_is_not_tried_by_what_waits_for_it(live: LiveAdmin) -> None:
    with black_hole() as port:
        (address,) = loopbacks(1, port)
        await fixed_group(live, "gone", [address])
        job = await live.job(app_name="gone")
        # Twice as many as may be on the wire at once: three seconds, not six.
        await write_due(live, job, 64)
        runs = await all_done(live, job)
    assert {run.outcome for run in runs} == {Outcome.FAILED}
    told = [run.trigger_message or "" for run in runs]
    tried = [each for each in told if f"{address} unreachable (code 500): no connection within 0.5 s" in each]
    passed = [each for each in told if f"{address} was unreachable a moment ago\nno address could be reached" in each]
    assert (1 <= len(tried) <= 32, len(tried) + len(passed)) == (True, 64)


@IMPATIENT
async def test_a_run_is_not_tried_at_a_thousand_addresses_that_swallow_everything(live: LiveAdmin) -> None:
    strategies = [each for each in RouteStrategy if each not in _ASKING]
    with black_hole() as port:
        jobs = []
        for net, strategy in enumerate(strategies, 1):
            await fixed_group(live, strategy, loopbacks(1000, port, net))
            jobs.append(await live.job(app_name=strategy, route_strategy=strategy))
        run_ids = [await live.trigger(job) for job in jobs]
        began_s = CLOCK.monotonic()
        async with on_time(live):
            runs = [await live.done(run_id, 20) for run_id in run_ids]
        # Ten times the send time-out, and what the last connection took, or a little more on a busy machine.
        assert CLOCK.monotonic() - began_s < 15
    for run in runs:
        assert (run.outcome, run.trigger_code) == (Outcome.FAILED, 500)
        last = (run.trigger_message or "").splitlines()[-1]
        assert re.fullmatch(r"no address could be reached within 5 s, and 99[0-9] more were not tried", last)


@IMPATIENT
async def test_what_one_lane_found_unreachable_the_other_does_not_try(live: LiveAdmin) -> None:
    with black_hole() as port:
        (address,) = loopbacks(1, port)
        await fixed_group(live, "gone", [address])
        fast, slow = await live.job(app_name="gone"), await live.job(app_name="gone")
        launcher = live.admin.engine.launcher
        for _ in range(11):
            launcher._slow_jobs.note(slow.id, 1.0, CLOCK.now())
        await write_due(live, fast, 32)
        # All that the address may have at once is on its way from the one lane; the other's runs wait for it.
        await until(lambda: launcher.sends_in_flight >= 32)
        await write_due(live, slow, 10)
        runs = await all_done(live, slow)
        await all_done(live, fast)
    assert {run.outcome for run in runs} == {Outcome.FAILED}
    assert all(f"{address} was unreachable a moment ago" in (run.trigger_message or "") for run in runs)
