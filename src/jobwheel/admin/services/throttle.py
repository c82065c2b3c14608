"""Slows down whoever tries passwords."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from jobwheel.admin.services.errors import SignInThrottledError, TooManyGuessesError
from jobwheel.kernel.clock import Clock

_MOST_KEYS: Final = 10_000


@dataclass(frozen=True, slots=True)
class ThrottleRule:
    """So many failures are free; then each next try waits: 1 s, doubling up to `most_s`. A quiet while forgets them."""

    free_failures: int
    most_s: float = 60.0
    forgotten_after_s: float = 900.0

    def delay_s(self, failures: int) -> float:
        """How long the try after so many failures has to wait."""
        over = failures - self.free_failures
        return 0.0 if over < 0 else min(self.most_s, 2.0 ** min(over, 30))


PER_USER: Final = ThrottleRule(free_failures=5)
# Behind one address there may be an office; its people mistype now and then.
PER_ADDRESS: Final = ThrottleRule(free_failures=20)


@dataclass(slots=True)
class _Record:
    failures: int = 0
    last_s: float = 0.0


class _Failures:
    """How often which key failed, and how long its next try has to wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._records: OrderedDict[tuple[str, str], _Record] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def count(self, key: tuple[str, str]) -> None:
        record = self._records.setdefault(key, _Record())
        record.failures += 1
        record.last_s = self._clock.monotonic()
        self._records.move_to_end(key)
        while len(self._records) > _MOST_KEYS:
            self._records.popitem(last=False)

    def forget(self, key: tuple[str, str]) -> None:
        self._records.pop(key, None)

    def take_back(self, key: tuple[str, str]) -> None:
        record = self._records.get(key)
        if record is not None:
            record.failures -= 1

    def wait_s(self, key: tuple[str, str], rule: ThrottleRule) -> float:
        record = self._records.get(key)
        if record is None:
            return 0.0
        quiet_s = self._clock.monotonic() - record.last_s
        if quiet_s >= rule.forgotten_after_s:
            del self._records[key]
            return 0.0
        return rule.delay_s(record.failures) - quiet_s


class SignInThrottle:
    """Counts failed sign-ins per user name and per client address, in this process.

    A try is counted before the password is checked, so that a hundred tries at once are a hundred; a success takes
    it back.
    """

    def __init__(self, clock: Clock) -> None:
        self._failures = _Failures(clock)

    def __len__(self) -> int:
        """How many names and addresses are remembered."""
        return len(self._failures)

    def begin(self, user_name: str, address: str) -> None:
        """Count a try.

        Raises:
            SignInThrottledError: it comes too early, and is not counted.
        """
        keys = self._keys(user_name, address)
        wait_s = max(self._failures.wait_s(key, rule) for key, rule in keys)
        if wait_s > 0:
            raise SignInThrottledError(int(wait_s) + 1)
        for key, _ in keys:
            self._failures.count(key)

    def succeeded(self, user_name: str, address: str) -> None:
        """The try was right: the name is free of blame, the address as it was before the try."""
        (user_key, _), (address_key, _) = self._keys(user_name, address)
        self._failures.forget(user_key)
        self._failures.take_back(address_key)

    @staticmethod
    def _keys(user_name: str, address: str) -> tuple[tuple[tuple[str, str], ThrottleRule], ...]:
        # A name of any length may be tried; only so much of it is kept.
        return ((("user", user_name[:64]), PER_USER), (("address", address[:64]), PER_ADDRESS))


class TokenThrottle:
    """Counts wrong API tokens per client address, in this process.

    After the look, not before it: programs ask many things at once, and a token is too long to be found by trying.
    """

    def __init__(self, clock: Clock) -> None:
        self._failures = _Failures(clock)

    def check(self, address: str) -> None:
        """Let pass an address whose turn it is.

        Raises:
            TooManyGuessesError: it comes too early.
        """
        wait_s = self._failures.wait_s(("address", address[:64]), PER_ADDRESS)
        if wait_s > 0:
            raise TooManyGuessesError(int(wait_s) + 1)

    def failed(self, address: str) -> None:
        """A token from there was wrong."""
        self._failures.count(("address", address[:64]))
