from pathlib import Path

import pytest

from jobwheel.schedule import ScheduleError, parse_schedule, preview

VECTORS = Path(__file__).parents[2] / "vectors"


def rows(name: str) -> list[list[str]]:
    lines = (VECTORS / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("# ")]


def next_times(expression: str, zone: str, base: str, count: int) -> list[int]:
    return preview(parse_schedule("CRON", expression, zone=zone, anchor_ms=None), int(base), count)


def test_every_row_of_the_cron_vectors_agrees() -> None:
    wrong = []
    table = rows("cron.tsv")
    for expression, zone, base, valid, expected in table:
        if valid == "0":
            with pytest.raises(ScheduleError):
                parse_schedule("CRON", expression, zone=zone, anchor_ms=None)
            continue
        entries = expected.split(",")
        times = [int(time) for time in entries if time != "none"]
        found = next_times(expression, zone, base, len(entries))
        if found != times:
            wrong.append(f"{expression} in {zone} after {base}: {found}, expected {times}")
    assert len(table) == 2536
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize(("expression", "zone", "base", "expected"), rows("cron_dst.tsv"))
def test_clock_changes_follow_the_rule(expression: str, zone: str, base: str, expected: str) -> None:
    times = [int(time) for time in expected.split(",")]
    assert next_times(expression, zone, base, len(times)) == times


def test_every_invalid_expression_is_refused_with_its_field() -> None:
    lines = [row[0] for row in rows("cron_invalid.txt")]
    for line in lines:
        with pytest.raises(ScheduleError) as caught:
            parse_schedule("CRON", line, zone="UTC", anchor_ms=None)
        assert caught.value.field == "schedule_conf", line
        assert caught.value.message.startswith(f"{caught.value.part}: "), line
    assert len(lines) == 354
