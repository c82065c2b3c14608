"""How many requests may be on the wire to each address at once, whoever makes them."""

import asyncio


class _Gate(asyncio.Semaphore):
    """The slots of one address. `users` are those that have one or wait for one."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.users = 0


class AddressGates:
    """The limit per address (`behaviour.md`, Lanes): runs and a router's questions together.

    An address without requests is forgotten.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._gates: dict[str, _Gate] = {}

    def __len__(self) -> int:
        """How many addresses have requests, or some that wait."""
        return len(self._gates)

    async def enter(self, address: str) -> None:
        """Take a slot of the address, when one is free. Whoever has it calls `leave`."""
        gate = self._gates.get(address)
        if gate is None:
            gate = self._gates[address] = _Gate(self.limit)
        gate.users += 1
        try:
            await gate.acquire()
        except asyncio.CancelledError:
            self._forget(address, gate)
            raise

    def leave(self, address: str) -> None:
        """Give a slot of the address back."""
        gate = self._gates[address]
        gate.release()
        self._forget(address, gate)

    def _forget(self, address: str, gate: _Gate) -> None:
        gate.users -= 1
        if not gate.users:
            del self._gates[address]
