import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobwheel.admin.api.instants import from_text, to_text
from jobwheel.admin.services.errors import InvalidFieldError

YEAR_2199_MS = 7_258_118_400_000


@given(st.integers(0, YEAR_2199_MS))
def test_there_and_back(instant_ms: int) -> None:
    assert from_text("at", to_text(instant_ms)) == instant_ms


def test_nothing_stays_nothing() -> None:
    assert to_text(None) is None
    assert from_text("at", None) is None


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-27T02:30:00.250Z",
        "2026-11-27t02:30:00.25z",
        "2026-11-27T02:30:00.250999999Z",
        "2026-11-27T10:30:00.250+08:00",
        "2026-11-27T10:30:00.250 08:00",
        "2026-11-27 02:30:00.250Z",
        "2026-11-26T21:30:00.250-05:00",
    ],
)
def test_forms_of_one_instant(text: str) -> None:
    assert from_text("at", text) == 1_795_746_600_250


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-11-27",
        "2026-11-27T02:30:00",
        "2026-11-27T02:30Z",
        "2026-11-31T02:30:00Z",
        "2026-11-27T24:30:00Z",
        "2026-11-27T02:30:00+24:00",
        "2026-11-27T02:30:00+08:60",
        "2026-11-27T02:30:00.Z",
        "2026-11-27T02:30:00Zx",
        "\uff12026-11-27T02:30:00Z",
        "1969-12-31T23:59:59Z",
        "0001-01-01T00:00:00+14:00",
        "1970-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "9999-12-31T00:01:00.000-23:59",
        "1795746600250",
        "2026-11-27T02:30:00Z\n",
    ],
)
def test_what_is_no_instant(text: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        from_text("planned_from", text)
    assert caught.value.field == "planned_from"


def test_the_last_instant_of_all() -> None:
    last = "9999-12-31T23:59:59.999Z"
    assert to_text(from_text("valid_until", last)) == last
    assert to_text(from_text("valid_until", "9999-12-31T23:59:59.999999999+00:00")) == last
