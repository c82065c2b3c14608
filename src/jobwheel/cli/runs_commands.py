"""`jobwheel runs …`."""

import sys
import threading
from typing import Annotated, Any

import typer

from jobwheel.cli.access import AfterOption, JsonOption, LimitOption, UrlOption, signed_in
from jobwheel.cli.output import harmless, local_time, page_note, print_json, print_table, seconds_between, tell
from jobwheel.cli.rest import Rest

RunId = Annotated[int, typer.Argument(metavar="ID", min=1, help="The run's id.")]

_COLUMNS = ("id", "job", "cause", "planned", "late by", "result", "took", "message")
_FOLLOW_S = 0.5


def list_runs(
    *,
    url: UrlOption = None,
    job: Annotated[int | None, typer.Option("--job", min=1, help="Only runs of this job.")] = None,
    outcome: Annotated[str | None, typer.Option("--outcome", help="Only these, such as failed.")] = None,
    phase: Annotated[str | None, typer.Option("--phase", help="Only these, such as pending.")] = None,
    limit: LimitOption = 20,
    after: AfterOption = None,
    as_json: JsonOption = False,
) -> None:
    """List runs, newest first."""
    query = {"job_id": job, "outcome": outcome, "phase": phase, "limit": limit, "after": after}
    with signed_in(url) as rest:
        page = rest.get("/api/v1/runs", query)
    if as_json:
        print_json(page)
        return
    print_table(_COLUMNS, [_row(run) for run in page["items"]], "there are no such runs")
    page_note(page)


def show_run(run_id: RunId, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Print what is known of a run."""
    with signed_in(url) as rest:
        run = rest.get(f"/api/v1/runs/{run_id}")
    if as_json:
        print_json(run)
        return
    print_table(("run", str(run["id"])), _lines(run), "")


def show_log(
    run_id: RunId,
    url: UrlOption = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")] = False,
) -> None:
    """Print what a run wrote."""
    with signed_in(url) as rest:
        print_log(rest, run_id, follow=follow)


def print_log(rest: Rest, run_id: int, *, follow: bool) -> None:
    """Print a run's log; with `follow` go on until the run has ended, and say how."""
    line = 1
    while True:
        page = rest.get(f"/api/v1/runs/{run_id}/log", {"from_line": line})
        _write(page["content"])
        nothing_new = page["to_line"] < line
        if page["is_end"] or (nothing_new and not follow):
            break
        line = max(line, page["to_line"] + 1)
        if nothing_new:
            threading.Event().wait(_FOLLOW_S)
    if follow:
        _tell_end(rest, run_id)


def _tell_end(rest: Rest, run_id: int) -> None:
    run = rest.get(f"/api/v1/runs/{run_id}")
    tell(f"run {run_id}: {run['outcome']}")


def _write(content: str) -> None:
    if content and not content.endswith("\n"):
        content += "\n"
    sys.stdout.write(harmless(content) if sys.stdout.isatty() else content)
    sys.stdout.flush()


def _lines(run: dict[str, Any]) -> list[tuple[str, object]]:
    """What there is to say of a run, in the order in which it happens."""
    lines = (
        ("job", run["job_id"]),
        ("cause", run["trigger_type"]),
        ("attempt", run["attempt"]),
        ("parameter", run["parameter"]),
        ("planned", local_time(run["planned_at"])),
        ("sent", local_time(run["sent_at"])),
        ("executor", run["executor_address"]),
        ("progress", _progress(run["progress"])),
        ("ended", local_time(run["ended_at"])),
        ("result", run["outcome"] or run["phase"]),
        ("message", message_of(run)),
    )
    return [(name, value) for name, value in lines if value not in (None, "")]


def _progress(progress: dict[str, Any] | None) -> str:
    if progress is None:
        return ""
    words = f", {progress['text']}" if progress["text"] else ""
    return f"{progress['fraction']:.0%}{words} ({local_time(progress['at'])})"


def _row(run: dict[str, Any]) -> tuple[object, ...]:
    return (
        run["id"],
        run["job_id"],
        run["trigger_type"],
        local_time(run["planned_at"]),
        seconds_between(run["due_at"], run["sent_at"]),
        run["outcome"] or run["phase"],
        seconds_between(run["sent_at"], run["ended_at"]),
        message_of(run),
    )


def message_of(run: dict[str, Any]) -> str:
    """The line that tells most about how a run ended: its own message, else the last one of its dispatch."""
    lines = str(run["handle_message"] or run["trigger_message"] or "").strip().splitlines()
    if not lines:
        return ""
    line = lines[0] if run["handle_message"] else lines[-1]
    return line if len(line) <= 80 else f"{line[:79]}…"
