"""Tokens of groups and of programs, and what of them is remembered of a registration, on each database."""

from sqlalchemy import select

from jobwheel.admin.domain.api_token import ApiToken
from jobwheel.admin.domain.caller import Right
from jobwheel.admin.domain.group import LIVE_FOR_MS
from jobwheel.admin.domain.group_token import TokenRef
from jobwheel.admin.domain.ids import ApiTokenId, GroupId, RunId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.domain.writes import Accepted, Settlement
from jobwheel.admin.store import api_tokens, belonging, group_tokens, registry
from jobwheel.admin.store.groups import get_group
from jobwheel.admin.store.registry import GroupAddresses
from jobwheel.admin.store.run_list import RunFilter, list_runs
from jobwheel.admin.store.tables import event, job_registry
from jobwheel.kernel.secret import Secret
from jobwheel.wire.messages import Features, RegistryRequest
from tests.support.store import INSTANCE, NOW_MS, Store

A, B = "http://a:9999/", "http://b:9999/"


def request(address: str, instance: str | None = None) -> RegistryRequest:
    features = None if instance is None else Features(instance=instance, running=3)
    return RegistryRequest(registry_group="EXECUTOR", registry_key="orders", registry_value=address, features=features)


async def add(store: Store, group_id: GroupId, expires_ms: int | None = None) -> TokenRef:
    new = group_tokens.NewToken(Secret(f"made-up-{expires_ms}"), "ada", NOW_MS, expires_ms)
    made = await store.database.write(group_tokens.add_token, group_id, new)
    return TokenRef(group_id, made.id)


async def beat(store: Store, address: str, token: TokenRef | None, instance: str | None = None) -> bool:
    return await store.database.write(registry.beat, store.zone, request(address, instance), NOW_MS, token)


async def read(store: Store, at_ms: int = NOW_MS) -> GroupAddresses:
    (group,) = await store.database.read(registry.load_addresses, at_ms)
    return group


async def test_tokens_are_added_kept_and_numbered_for_ever(store: Store) -> None:
    group_id = await store.group()
    refs = [await add(store, group_id), await add(store, group_id, NOW_MS + 1)]
    group = await store.database.read(get_group, store.zone, group_id)
    assert group is not None
    assert [(each.id, each.secret.reveal(), each.expires_ms) for each in group.tokens] == [
        (1, "made-up-None", None),
        (2, f"made-up-{NOW_MS + 1}", NOW_MS + 1),
    ]
    await store.database.write(group_tokens.keep_tokens, group_id, ())
    assert (await add(store, group_id)).token_id == refs[-1].token_id + 1


async def test_a_beat_remembers_with_which_token_it_came(store: Store) -> None:
    group_id = await store.group()
    old, new = await add(store, group_id), await add(store, group_id)
    assert await beat(store, A, old, "i-1")
    assert not await beat(store, A, old, "i-1")
    assert await beat(store, A, new, "i-1")
    assert await beat(store, B, new)
    found = {each.address: each for each in (await read(store)).registrations}
    assert (found[A].token, found[B].token) == (new, new)
    # Of one that is not ours nothing else is known.
    assert (found[A].load is None, found[B].load is None) == (False, True)
    assert await beat(store, B, None)
    row = await store.database.read(
        lambda c: c.execute(select(job_registry).order_by(job_registry.c.id.desc())).first()
    )
    assert row is not None
    assert row.features is None


async def test_who_came_with_a_token_that_is_over_is_not_live(store: Store) -> None:
    group_id = await store.group()
    ref = await add(store, group_id, NOW_MS + 10)
    await beat(store, A, ref)
    await beat(store, B, None)
    assert [each.address for each in (await read(store)).registrations] == [A, B]
    assert [each.address for each in (await read(store, NOW_MS + 10)).registrations] == [B]
    assert (await read(store, NOW_MS + 10)).known == {A: ref, B: None}


async def test_a_token_of_another_group_of_the_app_name_counts_there_alone(store: Store) -> None:
    first, _ = await store.group(), await store.group()
    await beat(store, A, await add(store, first))
    groups = await store.database.read(registry.load_addresses, NOW_MS)
    assert {each.group_id == first: [one.address for one in each.registrations] for each in groups} == {
        True: [A],
        False: [],
    }


async def test_what_a_dead_address_came_with_is_known_as_long_as_the_registry_has_it(store: Store) -> None:
    group_id = await store.group()
    ref = await add(store, group_id)
    await beat(store, A, ref)
    group = await read(store, NOW_MS + LIVE_FOR_MS)
    assert (group.registrations, group.known) == ((), {A: ref})
    await store.database.write(group_tokens.keep_tokens, group_id, ())
    group = await read(store, NOW_MS + LIVE_FOR_MS)
    assert (group.tokens, group.known) == ((), {A: ref})


async def test_a_row_without_a_beat_of_ours_is_known_and_not_live(store: Store) -> None:
    await add(store, await store.group())
    row = {"registry_group": "EXECUTOR", "registry_key": "orders", "registry_value": A}
    await store.database.write(lambda c: c.execute(job_registry.insert().values(**row)))
    group = await read(store)
    assert (group.registrations, group.known) == ((), {A: None})


async def test_a_foreign_result_before_the_own_one_takes_nothing_from_it(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    accepted = Accepted(run_id, NOW_MS + 10, INSTANCE, "accepted\n")
    foreign = Settlement(run_id, NOW_MS + 20, 500, Outcome.FAILED, "forged", GroupId(2))
    own = Settlement(run_id, NOW_MS + 30, 200, Outcome.SUCCEEDED, "done", GroupId(1))
    applied = await store.apply(node, foreign, accepted, own)
    assert [each.outcome for each in applied.ended] == [Outcome.SUCCEEDED]
    row = await store.run_row(run_id)
    assert (row["accepted_ms"], row["instance_id"], row["handle_msg"]) == (NOW_MS + 10, INSTANCE, "done")
    assert "accepted" in row["trigger_msg"]


async def test_a_foreign_result_alone_leaves_the_answer(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    foreign = Settlement(run_id, NOW_MS + 20, 500, Outcome.FAILED, "forged", GroupId(2))
    assert (await store.apply(node, foreign, Accepted(run_id, NOW_MS + 10, INSTANCE, "accepted\n"))).ended == []
    row = await store.run_row(run_id)
    assert (row["phase"], row["outcome"], row["accepted_ms"]) == ("accepted", None, NOW_MS + 10)


async def test_tokens_of_programs(store: Store) -> None:
    tokens = [
        ApiToken(ApiTokenId(0), "ci", GroupId(1), Right.SCRIPTS, "ada", NOW_MS, NOW_MS + 10),
        ApiToken(ApiTokenId(0), "look", None, Right.READ, "ada", NOW_MS, None),
    ]
    for at, token in enumerate(tokens):
        await store.database.write(api_tokens.insert_api_token, token, f"hash-{at}")

    async def find(text: str, at_ms: int = NOW_MS) -> ApiToken | None:
        return await store.database.read(api_tokens.find_api_token, text, at_ms)

    found = await find("hash-0")
    assert found is not None
    assert (found.name, found.group_id, found.right, found.expires_ms) == ("ci", 1, Right.SCRIPTS, NOW_MS + 10)
    assert [await find("hash-0", NOW_MS + 10), await find("hash-9")] == [None, None]
    listed = await store.database.read(api_tokens.list_api_tokens, 0, 10)
    assert [each.name for each in listed] == ["ci", "look"]
    assert await store.database.write(api_tokens.delete_api_tokens_of, GroupId(1)) == 1
    taken = await store.database.write(api_tokens.take_api_token, listed[1].id)
    assert taken == listed[1]
    assert await store.database.write(api_tokens.take_api_token, listed[1].id) is None


async def test_which_group_things_are_of(store: Store) -> None:
    group_id = await store.group()
    job_id = await store.job(job_group=group_id)
    run_id = (await store.pending(None, job_id=job_id, group_id=9))[0].id
    await store.database.write(lambda c: c.execute(event.insert().values(**_event(4711, 5))))
    await store.database.write(lambda c: c.execute(event.insert().values(**_event(4711, 6))))
    find = store.database.read
    assert [await find(belonging.group_of_group, each) for each in (group_id, 4711)] == [group_id, None]
    assert [await find(belonging.group_of_job, each) for each in (job_id, 4711, 4712)] == [group_id, 6, None]
    assert [await find(belonging.group_of_run, each) for each in (run_id, 2**62)] == [9, None]
    ids = [run_id, RunId(2**62)]
    assert await find(belonging.known_runs, ids, None) == {run_id}
    assert [await find(belonging.known_runs, ids, each) for each in (GroupId(9), GroupId(5))] == [{run_id}, set()]


def _event(job_id: int, group_id: int) -> dict[str, object]:
    return {"at_ms": 1, "kind": "job.updated", "actor": "t", "job_group": group_id, "job_id": job_id, "details": "{}"}


async def test_runs_of_the_groups_that_somebody_may_see(store: Store) -> None:
    made: dict[int, RunId] = {}
    for group_id in (1, 2, 3):
        made[group_id] = (await store.pending(None, group_id=group_id))[0].id

    async def groups(*visible: int, **fields: int) -> list[int]:
        wanted = RunFilter(group_ids=frozenset(map(GroupId, visible)), **fields)  # type: ignore[arg-type]
        return [run.group_id for run in await store.database.read(list_runs, wanted, None, 10)]

    assert [await groups(), await groups(2), await groups(1, 3)] == [[], [2], [3, 1]]
    assert [await groups(1, 3, group_id=3), await groups(1, 3, group_id=2)] == [[3], []]
