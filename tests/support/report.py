"""The verdicts of a long run, and the page that shows them.

`python -m tests.support.report {file of verdicts} {page}` writes the table between the page's markers anew.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.support.checker import Verdict

BEGIN, END = "<!-- verdicts: begin -->", "<!-- verdicts: end -->"
_FIGURES = ("rounds", "planned", "executed", "misfired", "failed", "open", "lost", "doubled")
_HEADINGS = ("database", "fault", *_FIGURES, "latest")


def record_verdict(database: str, fault: str, rounds: int, verdict: Verdict) -> None:
    """Append a verdict to the file that JOBWHEEL_CHAOS_REPORT names; without it do nothing."""
    path = os.environ.get("JOBWHEEL_CHAOS_REPORT")
    if not path:
        return
    line = {"database": database, "fault": fault, "rounds": rounds, **verdict.figures, "good": verdict.good}
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def table(lines: Iterable[Mapping[str, Any]]) -> str:
    """The verdicts as a Markdown table, by database in the order of their coming; one that is not good says so."""
    kept = list(lines)
    databases = list(dict.fromkeys(line["database"] for line in kept))
    ordered = sorted(kept, key=lambda line: databases.index(line["database"]))
    rule = ["---", "---", *["--:"] * (len(_HEADINGS) - 2)]
    rows = [_HEADINGS, rule, *(_cells(line) for line in ordered)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def with_table(page: str, text: str) -> str:
    """The page with what stands between its markers replaced.

    Raises:
        ValueError: the page has no markers.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def _cells(line: Mapping[str, Any]) -> list[str]:
    fault = line["fault"] if line["good"] else f"**{line['fault']}: not good**"
    figures = [f"{line[name]:,}" for name in _FIGURES]
    return [line["database"], fault, *figures, f"{line['latest_ms'] / 1000:.1f} s"]


def main(verdicts: str, page: str) -> None:
    lines = [json.loads(line) for line in Path(verdicts).read_text("utf-8").splitlines()]
    text = table(lines)
    sys.stdout.write(f"{text}\n")
    path = Path(page)
    path.write_text(with_table(path.read_text("utf-8"), text), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
