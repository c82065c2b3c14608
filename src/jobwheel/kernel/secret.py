"""Secrets that do not leak into logs, messages or tracebacks."""

import hmac


class Secret:
    """A text that prints as `***`. Only `reveal()` gives it away."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself: call it where the secret is sent, nowhere else."""
        return self._value

    def matches(self, candidate: str) -> bool:
        """Compare in a time that does not depend on how much of the text agrees."""
        # Settings and headers may hold bytes that are no UTF-8, as lone surrogates: they compare like any others.
        return hmac.compare_digest(self._value.encode(errors="surrogatepass"), candidate.encode(errors="surrogatepass"))

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.matches(other.reveal())

    def __hash__(self) -> int:
        return hash(("Secret", self._value))
