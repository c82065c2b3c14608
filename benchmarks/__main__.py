"""All measurements as one table, beside the stored figures.

`python -m benchmarks [--brief] [--only TEXT] [--json] [--store]`

`--brief` is one short iteration of each, several at the same time, to see that they still work; its figures say
nothing. `--store` keeps the figures of this machine in `benchmarks/results/`.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import burst, cron, dead, dispatch, engine, executor, idle, memory, nodes, rows, upkeep
from benchmarks.load import WARM_UP_S
from benchmarks.place import DATABASES
from benchmarks.pool import Measurements, measure_all
from benchmarks.report import Figures, is_wrong

_STORED: Final = Path(__file__).parent / "results" / "figures.json"
_AT_ONCE_IF_BRIEF: Final = 6

# Runs a second, plain and batched: somewhat more than two cores do. With far more, planning takes what sending needs.
_FLAT_OUT: Final = {"sqlite": (8500, 15_300), "postgresql": (4200, 6200), "mariadb": (4200, 6200)}


def _measurements(*, brief: bool) -> Measurements:
    warm_up_s = 2.0 if brief else WARM_UP_S
    seconds = 1.0 if brief else 20.0
    rate = 50 if brief else 500
    resting = idle.Idle(1.0, jobs=2000, pending=200, runs=2000) if brief else idle.Idle()
    log = (20_000, 1) if brief else (1_000_000,)
    # The longest first, so that none of them is left alone at the end.
    return {
        "memory": partial(memory.measure, memory.Load(10.0 if brief else 120.0, rate, warm_up_s=warm_up_s)),
        **{f"run log on {kind}": partial(rows.figures, kind, *log) for kind in DATABASES},
        **{
            f"upkeep on {kind}": partial(upkeep.measure, upkeep.Upkeep(kind, 10_000 if brief else 1_000_000))
            for kind in DATABASES
        },
        "clean-up beside a load": partial(
            upkeep.measure,
            upkeep.Upkeep("sqlite", 5000 if brief else 1_000_000, rate, seconds, warm_up_s),
        ),
        "two admins": partial(nodes.measure, nodes.Load(seconds, 100 if brief else 4500, warm_up_s=warm_up_s)),
        "one of five executors dead": partial(dead.measure, dead.Load(seconds, rate, warm_up_s=warm_up_s)),
        "idle with 100,000 jobs": partial(idle.measure, resting),
        "burst of 10,000": partial(burst.measure, burst.Burst(200 if brief else 10_000)),
        **{name: partial(engine.figures, load) for name, load in _engine_loads(seconds, warm_up_s, brief=brief)},
        "executor": partial(executor.measure, executor.Load(seconds, warm_up_s=warm_up_s)),
        "cron": cron.measure,
        "dispatch": dispatch.measure,
    }


def _engine_loads(seconds: float, warm_up_s: float, *, brief: bool) -> Iterator[tuple[str, engine.Load]]:
    """How late the engine is and what it can do, on each database; briefly, where only the rate differs, just once."""

    def load(kind: str, rate: int, executor: str = "recording", *, batched: bool = False) -> engine.Load:
        return engine.Load(kind, 100 if brief else rate, seconds, executor, batched, warm_up_s)

    for kind, (plain, batched) in _FLAT_OUT.items():
        if not brief:
            yield f"engine on {kind} at 100 runs/s", load(kind, 100)
            yield f"engine on {kind} at 2,000 runs/s", load(kind, 2000)
        yield f"engine on {kind} flat out", load(kind, plain)
        yield f"engine on {kind} flat out, batched", load(kind, batched, batched=True)
    yield "engine with the SDK at 500 runs/s", load("sqlite", 500, "sdk")


def _table(figures: Mapping[str, Figures], stored: Mapping[str, Figures]) -> str:
    lines = [f"{'measurement':<40}{'figure':<38}{'now':>12}{'stored':>12}{'ratio':>8}"]
    for measurement, values in figures.items():
        for name, value in values.items():
            before = stored.get(measurement, {}).get(name)
            ratio = f"{value / before:.2f}" if before else ""
            shown = "" if before is None else f"{before:g}"
            lines.append(f"{measurement:<40}{name:<38}{value:>12g}{shown:>12}{ratio:>8}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--brief", action="store_true", help="one short iteration: does it still work?")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="those whose names contain it; the others stay as stored"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--store", action="store_true", help="keep the figures as those to compare with")
    options = parser.parse_args()
    every = _measurements(brief=options.brief)
    chosen = {name: measure for name, measure in every.items() if options.only in name}
    if not chosen:
        parser.error(f"no measurement is called so; there are: {', '.join(every)}")
    figures = measure_all(chosen, _AT_ONCE_IF_BRIEF if options.brief else 1)
    stored = json.loads(_STORED.read_text("utf-8")) if _STORED.exists() else {}
    print(json.dumps(figures) if options.json else _table(figures, stored))
    if options.store:
        _STORED.parent.mkdir(exist_ok=True)
        kept = {name: {**stored, **figures}[name] for name in every if name in figures or name in stored}
        _STORED.write_text(json.dumps(kept, indent=2) + "\n", "utf-8")
    wrong = [
        f"{name} ({values['lost']:g} lost, {values['doubled']:g} doubled)"
        for name, values in figures.items()
        if is_wrong(values)
    ]
    if wrong:
        print(f"lost or doubled runs: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
