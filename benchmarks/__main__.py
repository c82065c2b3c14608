"""All measurements as one table, beside the stored figures: `python -m benchmarks [--brief] [--json] [--store]`.

`--brief` is one short iteration of each, to see that they still work; its figures say nothing. `--store` keeps the
figures of this machine in `benchmarks/results/`.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from benchmarks import cron, dispatch, engine, rows
from tests.support.servers import SERVER_KINDS

_STORED: Final = Path(__file__).parent / "results" / "figures.json"

Figures = Mapping[str, float]


def _measurements(*, brief: bool) -> dict[str, Callable[[], Figures]]:
    seconds = 2.0 if brief else 60.0
    throughput = 500 if brief else 5000

    def engine_with(executor: str, jobs: int, *, batched: bool = False) -> Callable[[], Figures]:
        return lambda: asdict(engine.measure(engine.Load("sqlite", jobs, seconds, executor, batched)))

    def rows_on(kind: str) -> Callable[[], Figures]:
        return lambda: rows.figures(kind, 20_000 if brief else 5_000_000)

    return {
        "cron": cron.measure,
        "dispatch": dispatch.measure,
        "engine at 100 runs/s": engine_with("recording", 100),
        "engine at 5,000 runs/s": engine_with("recording", throughput),
        "engine at 5,000 runs/s, batched": engine_with("recording", throughput, batched=True),
        "engine with the SDK at 500 runs/s": engine_with("sdk", 50 if brief else 500),
        **{f"run log on {kind}": rows_on(kind) for kind in ("sqlite", *SERVER_KINDS)},
    }


def _table(figures: Mapping[str, Figures], stored: Mapping[str, Figures]) -> str:
    lines = [f"{'measurement':<36}{'figure':<38}{'now':>12}{'stored':>12}{'ratio':>8}"]
    for measurement, values in figures.items():
        for name, value in values.items():
            before = stored.get(measurement, {}).get(name)
            ratio = f"{value / before:.2f}" if before else ""
            shown = "" if before is None else f"{before:g}"
            lines.append(f"{measurement:<36}{name:<38}{value:>12g}{shown:>12}{ratio:>8}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--brief", action="store_true", help="one short iteration: does it still work?")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--store", action="store_true", help="keep the figures as those to compare with")
    options = parser.parse_args()
    figures = {name: measure() for name, measure in _measurements(brief=options.brief).items()}
    stored = json.loads(_STORED.read_text("utf-8")) if _STORED.exists() else {}
    print(json.dumps(figures) if options.json else _table(figures, stored))
    if options.store:
        _STORED.parent.mkdir(exist_ok=True)
        _STORED.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    # A measurement is no timed test; but nothing may be lost or run twice, however fast.
    wrong = [name for name, values in figures.items() if values.get("lost") or values.get("doubled")]
    if wrong:
        print(f"lost or doubled runs: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
