"""The access token check."""

from collections.abc import Iterable

from jobwheel.kernel.secret import Secret


class AccessTokens:
    """The tokens that are valid at the moment: one, two during a rotation, or none (then nothing is asked for)."""

    __slots__ = ("_tokens",)

    def __init__(self, tokens: Iterable[Secret] = ()) -> None:
        self._tokens = tuple(token for token in tokens if token)

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def accepts(self, candidate: str | None) -> bool:
        """Whether `candidate` is one of the tokens. Looks at each of them, so that time tells nothing."""
        if not self._tokens:
            return True
        accepted = False
        for token in self._tokens:
            accepted |= token.matches(candidate or "")
        return accepted
