import dataclasses
import json
import traceback

import pytest

from jobwheel.kernel.secret import Secret

TEXT = "willow-77"


@dataclasses.dataclass(frozen=True)
class Holder:
    name: str
    token: Secret


def test_it_is_never_printed() -> None:
    secret = Secret(TEXT)
    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r}",
        f"{secret!s:>20}",
        "{}".format(secret),  # noqa: UP032 - this form is what is tested
        "%s %r" % (secret, secret),  # noqa: UP031 - as above
        repr(Holder("a", secret)),
        repr(dataclasses.asdict(Holder("a", secret))),
        repr([secret, {"token": secret}]),
        json.dumps({"token": secret}, default=str),
        str(ValueError(secret)),
    ]
    assert all("***" in text and TEXT not in text for text in shown)


def test_it_is_not_shown_by_a_traceback_with_its_locals() -> None:
    def fail(token: Secret) -> None:
        raise ValueError(f"refused: {token}")

    with pytest.raises(ValueError, match="refused") as caught:
        fail(Secret(TEXT))
    lines = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "token = ***" in lines
    assert TEXT not in lines


def test_only_reveal_gives_it_away() -> None:
    assert Secret(TEXT).reveal() == TEXT
    with pytest.raises(TypeError):
        json.dumps(Secret(TEXT))
    with pytest.raises(TypeError):
        vars(Secret(TEXT))


@pytest.mark.parametrize("text", [TEXT, "", "任务", "\ud800", "a" * 10_000])
def test_it_matches_itself_and_nothing_else(text: str) -> None:
    assert Secret(text).matches(text)
    assert not Secret(text).matches(f"{text} ")
    assert not Secret(f"{text}x").matches(text)


def test_equal_secrets_are_equal_and_hash_alike() -> None:
    assert Secret(TEXT) == Secret(TEXT)
    assert Secret(TEXT) != Secret("other")
    assert Secret(TEXT) != TEXT
    assert len({Secret(TEXT), Secret(TEXT)}) == 1


def test_an_empty_one_is_false() -> None:
    assert Secret("x")
    assert not Secret("")
