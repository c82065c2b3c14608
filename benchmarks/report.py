"""How a measurement runs alone: its options, and how it tells its figures."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from benchmarks.place import DATABASES

Figures = Mapping[str, float]
Load = TypeVar("Load", bound=Any)


def run_alone(
    doc: str | None, usual: Load, measure: Callable[[Load], Figures], options: Mapping[str, str | None]
) -> int:
    """Measure what the command line asks for, and report it; return the status.

    Args:
        doc: the measurement's description, of which the first line is shown.
        usual: a dataclass of what is measured if nothing else is said.
        measure: what measures it.
        options: the fields that the command line may change, each with its help.
    """
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    for name, text in options.items():
        default = getattr(usual, name)
        if isinstance(default, bool):
            parser.add_argument(f"--{name}", action="store_true", help=text)
        else:
            choices = DATABASES if name == "database" else None
            parser.add_argument(f"--{name}", type=type(default), default=default, choices=choices, help=text)
    parser.add_argument("--json", action="store_true", help="one JSON line")
    given = vars(parser.parse_args())
    as_json = given.pop("json")
    return report(measure(dataclasses.replace(usual, **given)), as_json=as_json)


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
