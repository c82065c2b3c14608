"""`jobwheel runs …`."""

import threading
from typing import Annotated, Any

import typer

from jobwheel.cli.access import AfterOption, JsonOption, LimitOption, UrlOption, signed_in
from jobwheel.cli.job_names import JobOption, find_job
from jobwheel.cli.output import local_time, page_note, print_json, print_table, print_text, seconds_between, tell
from jobwheel.cli.rest import Rest

RunId = Annotated[int, typer.Argument(metavar="ID", min=1, help="The run's id.")]

ByJobOption = Annotated[
    bool,
    typer.Option("--by-job", help="End all of the job there, if the executor cannot end one run alone."),
]

_COLUMNS = ("id", "job", "cause", "planned", "late by", "result", "took", "message")
_FOLLOW_S = 0.5
_CAME = "\u2192 "


def list_runs(
    *,
    url: UrlOption = None,
    job: JobOption = None,
    outcome: Annotated[str | None, typer.Option("--outcome", help="Only these, such as failed.")] = None,
    phase: Annotated[str | None, typer.Option("--phase", help="Only these, such as pending.")] = None,
    limit: LimitOption = 20,
    after: AfterOption = None,
    as_json: JsonOption = False,
) -> None:
    """List runs, newest first."""
    query = {"outcome": outcome, "phase": phase, "limit": limit, "after": after}
    with signed_in(url) as rest:
        query["job_id"] = None if job is None else find_job(rest, job)
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
        chain = rest.get(f"/api/v1/runs/{run_id}/chain")
    if as_json:
        print_json({**run, "chain": chain})
        return
    print_table(("run", str(run["id"])), [*_lines(run), *_chain_lines(run, chain)], "")


def show_log(
    run_id: RunId,
    url: UrlOption = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")] = False,
) -> None:
    """Print what a run wrote."""
    with signed_in(url) as rest:
        print_log(rest, run_id, follow=follow)


def kill_run(run_id: RunId, url: UrlOption = None, by_job: ByJobOption = False, as_json: JsonOption = False) -> None:
    """End a run before it ends by itself."""
    with signed_in(url) as rest:
        run = rest.post(f"/api/v1/runs/{run_id}/kill", {"by_job": by_job})
    if as_json:
        print_json(run)
    elif run["outcome"]:
        print(f"run {run_id}: {run['outcome']}")
    else:
        print(f"run {run_id}: its executor is told to end it")
        tell(f"see how it ends: jobwheel runs show {run_id}")


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
    print_text(content)


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
        ("last heard", local_time(run["last_heard_at"])),
        ("kill asked", local_time(run["kill_asked_at"])),
        ("ended", local_time(run["ended_at"])),
        ("result", run["outcome"] or run["phase"]),
        ("message", message_of(run)),
        *(("then", line) for line in _what_came(run)),
    )
    return [(name, value) for name, value in lines if value not in (None, "")]


def _chain_lines(run: dict[str, Any], chain: dict[str, Any]) -> list[tuple[str, object]]:
    """What the run comes of, and what came of it; nothing of a run that is alone."""
    parent = [chain["parent"]] if chain["parent"] else []
    attempts = chain["attempts"] if len(chain["attempts"]) > 1 else []
    lines: list[tuple[str, object]] = [("parent", _related(each)) for each in parent]
    lines += [(f"attempt {each['attempt']}", _related(each)) for each in attempts if each["id"] != run["id"]]
    lines += [(_shard(each), _related(each)) for each in chain["shards"] if each["id"] != run["id"]]
    return lines + [("child", f"job {each['job_id']}, {_related(each)}") for each in chain["children"]]


def _shard(run: dict[str, Any]) -> str:
    attempt = f", attempt {run['attempt']}" if run["attempt"] > 1 else ""
    return f"shard {run['shard_index']}/{run['shard_total']}{attempt}"


def _related(run: dict[str, Any]) -> str:
    return f"run {run['id']}: {run['outcome'] or run['phase']}"


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
    result, dispatch = _told(run["handle_message"]), _told(run["trigger_message"])
    line = result[0] if result else dispatch[-1] if dispatch else ""
    return line if len(line) <= 80 else f"{line[:79]}…"


def _what_came(run: dict[str, Any]) -> list[str]:
    """What the run's messages say came of it, such as `tried again after 30 s: run 4712`."""
    lines = [*(run["trigger_message"] or "").splitlines(), *(run["handle_message"] or "").splitlines()]
    return [line.removeprefix(_CAME) for line in lines if line.startswith(_CAME)]


def _told(message: str | None) -> list[str]:
    """A message's lines, without those that say what came of the run."""
    lines = (message or "").strip().splitlines()
    return [line for line in lines if not line.startswith(_CAME)]
