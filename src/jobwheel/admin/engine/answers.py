"""What a router chose after it had asked."""

from collections.abc import Sequence

import msgspec

from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.routing import Chosen


class Answers(msgspec.Struct, frozen=True):
    """What a router has chosen already, with what its questions said, and how long they took."""

    chosen: Chosen
    took_s: float

    def as_it_stands(self, candidates: Sequence[Candidate]) -> "Answers | None":
        """The choice, with its addresses as they are now; None if its first one is no candidate now: choose again."""
        if not self.chosen.candidates:
            return self
        now = {each.address: each for each in candidates}
        if self.chosen.candidates[0].address not in now:
            return None
        chosen = [now[each.address] for each in self.chosen.candidates if each.address in now]
        return Answers(Chosen(chosen, self.chosen.asked), self.took_s)
