import pytest

from jobwheel.kernel.secret import Secret
from jobwheel.wire.tokens import AccessTokens

BOTH = AccessTokens([Secret("willow-77"), Secret("heron-12")])


@pytest.mark.parametrize("candidate", ["willow-77", "heron-12"])
def test_each_valid_token_is_accepted(candidate: str) -> None:
    assert BOTH.accepts(candidate)


@pytest.mark.parametrize(
    "candidate", [None, "", " ", "willow-7", "willow-77 ", "WILLOW-77", "willow-77heron-12", "任务", "\udcff"]
)
def test_anything_else_is_refused(candidate: str | None) -> None:
    assert not BOTH.accepts(candidate)


def test_without_tokens_nothing_is_asked_for() -> None:
    assert AccessTokens().accepts(None)
    assert AccessTokens().accepts("anything")
    assert not AccessTokens()
    assert BOTH


def test_an_empty_token_is_no_token() -> None:
    assert not AccessTokens([Secret("")])
    assert not AccessTokens([Secret(""), Secret("willow-77")]).accepts("")


def test_every_token_is_looked_at_whichever_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    matches = Secret.matches

    def noting(self: Secret, candidate: str) -> bool:
        compared.append(self.reveal())
        return matches(self, candidate)

    monkeypatch.setattr(Secret, "matches", noting)
    assert BOTH.accepts("willow-77")
    assert compared == ["willow-77", "heron-12"]
