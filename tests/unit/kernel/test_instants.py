import pytest

from jobwheel.kernel.instants import instant_text

LAST = "9999-12-31T23:59:59.999Z"
FIRST = "0001-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("instant_ms", "text"),
    [
        (1_795_746_600_250, "2026-11-27T02:30:00.250Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (253_402_300_799_999, LAST),
        (253_402_300_800_000, LAST),
        (2**63 - 1, LAST),
        (-62_135_596_800_000, FIRST),
        (-62_135_596_800_001, FIRST),
        (-(2**63), FIRST),
    ],
)
def test_every_instant_has_a_text(instant_ms: int, text: str) -> None:
    assert instant_text(instant_ms) == text
