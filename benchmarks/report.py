"""How a measurement that runs alone tells its figures."""

import json
import sys
from collections.abc import Mapping

Figures = Mapping[str, float]


def report(figures: Figures, *, as_json: bool) -> int:
    """Print them, one on a line or all as a JSON object; return the status: 1 if a run was lost or doubled."""
    if as_json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:<28} {value:>12}")
    if is_wrong(figures):
        print("lost or doubled runs", file=sys.stderr)
    return int(is_wrong(figures))


def is_wrong(figures: Figures) -> bool:
    """A measurement is no timed test; but nothing may be lost or run twice, however fast."""
    return bool(figures.get("lost") or figures.get("doubled"))
