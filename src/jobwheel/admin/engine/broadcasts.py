"""A run that goes to all addresses of its group: one shard to each."""

from collections.abc import Sequence

import msgspec

from jobwheel.admin.domain.run import Lineage, NewRun, PendingRun, Shard
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.dispatcher import Flight
from jobwheel.admin.engine.trigger_message import TriggerMessages
from jobwheel.admin.store import take_off


class Broadcast(msgspec.Struct, frozen=True):
    """A run for all addresses of its group: its own flight is the one to the first of them."""

    flight: Flight
    others: Sequence[Candidate]
    messages: TriggerMessages

    def addresses(self) -> list[str]:
        """Where its shards go, in order of their index."""
        return [self.flight.candidates[0].address, *(candidate.address for candidate in self.others)]

    def shards(self) -> take_off.Broadcast:
        """What the take-off must know to make the other shards."""
        flight, total = self.flight, len(self.others) + 1
        rows = [_shard_row(flight, Shard(index, total)) for index in range(1, total)]
        return take_off.Broadcast(flight.run.id, rows, [flight.take_off(candidate) for candidate in self.others])

    def flights(self, made: Sequence[PendingRun]) -> list[Flight]:
        """The flights of all shards, once those but the first have been made."""
        total = len(self.others) + 1
        first = self.flight
        flights = [
            msgspec.structs.replace(first, run=run, candidates=[candidate], heading=self._heading(index, total))
            for index, (run, candidate) in enumerate(zip(made, self.others, strict=True), 1)
        ]
        run = msgspec.structs.replace(first.run, shard=Shard(0, total))
        return [msgspec.structs.replace(first, run=run, heading=self._heading(0, total)), *flights]

    def _heading(self, index: int, total: int) -> str:
        return self.flight.heading + self.messages.shard(index, total)


def _shard_row(flight: Flight, shard: Shard) -> NewRun:
    run = flight.run
    return NewRun(
        job_id=run.job_id,
        group_id=run.group_id,
        trigger_type=run.trigger_type,
        planned_ms=run.planned_ms,
        due_ms=run.due_ms,
        triggered_ms=run.triggered_ms,
        parameter=run.parameter,
        owner=flight.owner,
        named_addresses=run.named_addresses,
        attempt=run.attempt,
        shard=shard,
        broadcast_id=run.id,
        lineage=_shards_lineage(run),
    )


def _shards_lineage(run: PendingRun) -> Lineage | None:
    """A broadcast that comes of another run: all its shards do. Each is the first of its own chain of retries."""
    if run.parent_run_id is None and run.attempt == 1:
        return None
    return Lineage(parent_run_id=run.parent_run_id, retries_left=run.retries_left)
