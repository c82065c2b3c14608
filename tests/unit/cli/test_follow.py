from collections.abc import Mapping
from typing import Any, cast

import pytest

from jobwheel.cli.rest import Rest
from jobwheel.cli.runs_commands import print_log


class GrowingLog:
    """Gives one page after the other, and notes from which line each was asked."""

    def __init__(self, *pages: tuple[int, str, bool]) -> None:
        self._pages = list(pages)
        self.asked: list[object] = []

    def get(self, path: str, query: Mapping[str, object] | None = None) -> Any:
        if query is None:
            return {"outcome": "succeeded"}
        self.asked.append(query["from_line"])
        to_line, content, is_end = self._pages.pop(0)
        return {"from_line": query["from_line"], "to_line": to_line, "content": content, "is_end": is_end}


def _rest(log: GrowingLog) -> Rest:
    return cast("Rest", log)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobwheel.cli.runs_commands._FOLLOW_S", 0)


def test_a_log_that_grows_is_printed_once_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    log = GrowingLog((0, "", False), (2, "one\ntwo\n", False), (2, "", False), (3, "three", True))
    print_log(_rest(log), 7, follow=True)
    assert log.asked == [1, 1, 3, 3]
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("one\ntwo\nthree\n", "run 7: succeeded\n")


def test_without_following_it_ends_where_there_is_nothing_new(capsys: pytest.CaptureFixture[str]) -> None:
    log = GrowingLog((2, "one\ntwo\n", False), (2, "", False))
    print_log(_rest(log), 7, follow=False)
    assert log.asked == [1, 3]
    assert capsys.readouterr().out == "one\ntwo\n"
