"""How long to wait before the next try."""

import random
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double from `first_s` to `most_s`, each shortened by up to `jitter` of itself (0 to 1)."""

    first_s: float = 0.2
    most_s: float = 10.0
    jitter: float = 0.2
    source: random.Random = field(default_factory=random.Random, compare=False, repr=False)

    def delay_s(self, failures: int) -> float:
        """The delay after the `failures`-th failure in a row, counted from 1.

        Raises:
            ValueError: `failures` is less than 1.
        """
        if failures < 1:
            raise ValueError(f"failures is {failures}, but counts from 1")
        # The exponent is bounded so that a failure that lasts for days cannot overflow.
        full = min(self.most_s, self.first_s * 2.0 ** min(failures - 1, 60))
        return full * (1 - self.jitter * self.source.random())
