import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from jobwheel.kernel.logging import LogFormat, bind, configure, get_logger
from jobwheel.kernel.secret import Secret


@pytest.fixture(autouse=True)
def root_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def output(log_format: LogFormat = "text", level: str = "INFO") -> io.StringIO:
    stream = io.StringIO()
    configure(level, log_format, stream)
    return stream


def json_line(stream: io.StringIO) -> dict[str, Any]:
    (line,) = stream.getvalue().splitlines()
    entry: dict[str, Any] = json.loads(line)
    return entry


log = get_logger("jobwheel.sample")


def fail() -> None:
    raise ValueError("made up")


def test_a_text_line_has_time_level_logger_event_and_fields() -> None:
    stream = output()
    log.info("run.accepted", run_id=7, job="settle")
    time, _, rest = stream.getvalue().partition(" ")
    assert time.endswith("Z")
    assert len(time) == len("2026-11-26T00:00:00.000Z")
    assert rest == "INFO    jobwheel.sample: run.accepted run_id=7 job=settle\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("two words", '"two words"'),
        ("", '""'),
        ('a"b', r'"a\"b"'),
        ("a\nb", r'"a\nb"'),
        ("a\x1b[31mb", r'"a\u001b[31mb"'),
        ("a\u2028b", r'"a\u2028b"'),
        ("任务", "任务"),
        ("100%", "100%"),
        (None, "None"),
        (1.5, "1.5"),
    ],
)
def test_a_text_field_cannot_break_its_line_or_the_next_field_apart(value: object, text: str) -> None:
    stream = output()
    log.warning("sample", field=value, after=1)
    assert stream.getvalue().endswith(f"sample field={text} after=1\n")


def test_a_percent_sign_in_an_event_or_a_field_is_text() -> None:
    stream = output()
    log.info("disk at 93% %s %d", left="7% %s")
    assert 'disk at 93% %s %d left="7% %s"\n' in stream.getvalue()


def test_a_json_line_holds_the_same() -> None:
    stream = output("json")
    log.error("run.failed", run_id=7, text='a "b"\n任务', secret=Secret("willow-77"))
    entry = json_line(stream)
    assert entry.pop("time").endswith("Z")
    assert entry == {
        "level": "ERROR",
        "logger": "jobwheel.sample",
        "event": "run.failed",
        "run_id": 7,
        "text": 'a "b"\n任务',
        "secret": "***",
    }


def test_a_field_never_stands_in_for_a_part_of_the_json_line() -> None:
    stream = output("json")
    log.info("sample", level="mine", time="mine", logger="mine")
    entry = json_line(stream)
    assert (entry["level"], entry["logger"]) == ("INFO", "jobwheel.sample")
    assert entry["time"] != "mine"
    assert entry["level_"] == "mine"


def test_a_line_of_another_library_is_json_too() -> None:
    stream = output("json")
    logging.getLogger("other").warning("%d of %d", 1, 2)
    assert json_line(stream)["event"] == "1 of 2"


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_an_exception_comes_with_its_traceback(log_format: LogFormat) -> None:
    stream = output(log_format)
    try:
        fail()
    except ValueError as error:
        log.exception("sample.failed")
        caught = error
    log.error("sample.failed", exc_info=caught)
    assert stream.getvalue().count("ValueError: made up") == 2
    assert stream.getvalue().count("Traceback") == 2


def test_bound_fields_are_in_every_event_of_the_block_and_only_there() -> None:
    stream = output()
    with bind(run_id=7):
        with bind(job_id=3):
            log.info("inner", own=1)
        log.info("outer", run_id=8)
    log.info("after")
    lines = [line.partition(": ")[2] for line in stream.getvalue().splitlines()]
    assert lines == ["inner run_id=7 job_id=3 own=1", "outer run_id=8", "after"]


def test_what_is_not_shown_is_not_rendered() -> None:
    class Costly:
        def __str__(self) -> str:
            raise AssertionError("rendered")

    stream = output()
    log.debug("sample", field=Costly())
    assert stream.getvalue() == ""


def test_a_record_names_the_line_that_logged_it(caplog: pytest.LogCaptureFixture) -> None:
    log.error("one")
    try:
        fail()
    except ValueError:
        log.exception("two")
    assert {record.filename for record in caplog.records} == {"test_logging.py"}


def test_configuring_again_replaces_the_output() -> None:
    first = output()
    second = output("json", "WARNING")
    log.info("quiet")
    log.warning("loud")
    assert first.getvalue() == ""
    assert json_line(second)["event"] == "loud"
