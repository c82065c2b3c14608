from hypothesis import given
from hypothesis import strategies as st

from jobwheel.executor.output_lines import MOST_LINE_CHARACTERS, OutputLines


def lines_of(*pieces: bytes) -> list[str]:
    lines = OutputLines()
    return [line for piece in pieces for line in lines.feed(piece)] + list(lines.end())


def test_lines_come_when_they_are_whole() -> None:
    lines = OutputLines()
    assert list(lines.feed(b"one\ntw")) == ["one"]
    assert list(lines.feed(b"o\r\n\nthree")) == ["two", ""]
    assert list(lines.end()) == ["three"]
    assert list(lines.end()) == []


def test_a_character_may_come_in_two_pieces() -> None:
    assert lines_of("账".encode()[:1], "账".encode()[1:]) == ["账"]
    assert lines_of(b"\xe8\xb4") == ["\ufffd"]


def test_a_long_line_comes_in_pieces_and_waits_for_no_end() -> None:
    lines = OutputLines()
    assert list(lines.feed(b"x" * (2 * MOST_LINE_CHARACTERS + 1))) == ["x" * MOST_LINE_CHARACTERS] * 2
    assert list(lines.feed(b"\n")) == ["x"]


@given(st.text(alphabet="ab账\n", max_size=200), st.integers(1, 7))
def test_how_it_is_cut_does_not_matter(text: str, size: int) -> None:
    data = text.encode()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    whole = text.split("\n")
    assert lines_of(*pieces) == (whole if whole[-1] else whole[:-1])
