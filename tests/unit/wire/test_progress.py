import json

import pytest

from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.messages import Progress
from jobwheel.wire.progress import decode_progress

GOOD = {"logId": 1, "fraction": 0.4, "text": "four of ten"}


def test_progress_is_read() -> None:
    body = json.dumps([GOOD, {"logId": 2, "fraction": 1}, {"logId": 3, "fraction": 0, "text": None}]).encode()
    assert decode_progress(body) == ([Progress(1, 0.4, "four of ten"), Progress(2, 1.0), Progress(3, 0.0)], [])
    assert decode_progress(b"[]") == ([], [])


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"fraction": 0.4}, "item 1: logId: is missing"),
        ({"logId": 1}, "item 1: fraction: is missing"),
        ({"logId": 1, "fraction": None}, "item 1: fraction: is missing"),
        ({"logId": "1", "fraction": 0.4}, "item 1: logId: expected int, got str"),
        ({"logId": 2**63, "fraction": 0.4}, "item 1: logId: expected int <= "),
        ({"logId": 1, "fraction": "0.4"}, "item 1: fraction: expected float, got str"),
        ({"logId": 1, "fraction": 1.1}, "item 1: fraction: 1.1 is not between 0 and 1"),
        ({"logId": 1, "fraction": -0.1}, "item 1: fraction: -0.1 is not between 0 and 1"),
        ({"logId": 1, "fraction": 0.4, "text": 5}, "item 1: text: expected str, got int"),
        (None, "item 1: expected object, got null"),
        ([], "item 1: expected object, got array"),
    ],
)
def test_each_item_is_judged_alone(bad: object, why: str) -> None:
    good, rejected = decode_progress(json.dumps([GOOD, bad, GOOD]).encode())
    assert good == [Progress(1, 0.4, "four of ten")] * 2
    (reason,) = rejected
    assert reason.startswith(why)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-"])
def test_what_is_no_number_of_json_is_refused(number: str) -> None:
    with pytest.raises(MalformedMessageError):
        decode_progress(f'[{{"logId": 1, "fraction": {number}}}]'.encode())


def test_a_number_that_is_too_large_spoils_its_item_alone() -> None:
    good, rejected = decode_progress(b'[{"logId": 1, "fraction": 1e999}, {"logId": 2, "fraction": 0}]')
    assert (good, len(rejected)) == ([Progress(2, 0.0)], 1)


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b'{"logId": 1}', b"[", b"[1", b"[" * 100_000])
def test_a_body_that_is_no_list_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        decode_progress(body)


def test_a_body_of_nothing_but_bad_items_is_not_read_to_its_end() -> None:
    with pytest.raises(MalformedMessageError, match="more than 10000 of its 10001 items are bad"):
        decode_progress(json.dumps([0] * 10_001).encode())
