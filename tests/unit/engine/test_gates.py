import asyncio

from jobwheel.admin.engine.gates import AddressGates

ONE, OTHER = "http://10.0.0.7:9999/", "http://10.0.0.8:9999/"


async def test_an_address_has_so_many_slots_and_another_its_own() -> None:
    gates = AddressGates(2)
    for _ in range(2):
        await gates.enter(ONE)
    waiting = asyncio.create_task(gates.enter(ONE))
    await gates.enter(OTHER)
    assert not waiting.done()
    gates.leave(ONE)
    await asyncio.wait_for(waiting, 1)
    for address in (ONE, ONE, OTHER):
        gates.leave(address)
    assert len(gates) == 0


async def test_who_gives_up_waiting_leaves_nothing_behind() -> None:
    gates = AddressGates(1)
    await gates.enter(ONE)
    waiting = asyncio.create_task(gates.enter(ONE))
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, in which it begins to wait
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    gates.leave(ONE)
    assert len(gates) == 0
