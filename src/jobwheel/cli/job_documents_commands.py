"""`jobwheel jobs export`, `plan` and `apply`: jobs as a file that is kept with the code."""

import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from jobwheel.cli.access import JsonOption, UrlOption, signed_in
from jobwheel.cli.errors import JobFileError, RefusedError
from jobwheel.cli.output import one_line, print_json, print_text, tell
from jobwheel.cli.rest import Rest

if TYPE_CHECKING:
    from jobwheel.cli.job_file import JobFile

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="Groups and jobs, in YAML or JSON (.json).")]
DeleteOption = Annotated[
    bool, typer.Option("--delete-missing", help="Delete jobs of the file's groups that have a key and are not in it.")
]

CHANGES_CODE: Final = 2
"""How a plan ends that would change something."""

_SIGNS: Final = {"create": "+", "change": "~", "delete": "-", "missing": "?"}
_WORDS: Final = {"missing": "is not in the file, and stays"}
_PATIENCE_S: Final = 300.0
_PAGE: Final = 500


def export_jobs(
    *,
    url: UrlOption = None,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="APP_NAME", show_default=False, help="Only this group [default: all]."),
    ] = None,
    form: Annotated[str, typer.Option("--format", help="yaml or json.")] = "yaml",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", show_default=False, help="Write it to this file.")
    ] = None,
    assign_keys: Annotated[
        bool, typer.Option("--assign-keys", help="First give jobs without a key one: job-ID.")
    ] = False,
) -> None:
    """Write groups and their jobs as a file that `plan` and `apply` read."""
    # YAML is for these three commands alone; an admin is started by the same program, and would keep it.
    from jobwheel.cli.job_file import job_file_text  # noqa: PLC0415 - see above

    if form not in ("yaml", "json"):
        raise typer.BadParameter("--format is yaml or json")
    with signed_in(url) as rest:
        if assign_keys:
            _assign_keys(rest, group or [])
        document = rest.get("/api/v1/jobs/export", {"app_name": group or []})
    text = job_file_text(document, form)
    if output is None:
        print_text(text)
    else:
        output.write_text(text, "utf-8")
        tell(f"{len(document['jobs'])} jobs of {len(document['groups'])} groups are in {output}")


def plan_jobs(
    file: FileArgument, url: UrlOption = None, delete_missing: DeleteOption = False, as_json: JsonOption = False
) -> None:
    """Show what `apply` would do; the exit code is 0 for nothing and 2 for changes."""
    read = _read(file)
    with signed_in(url) as rest:
        changes = _send(rest, "plan", read, {"delete_missing": delete_missing})
    if as_json:
        print_json(changes)
    else:
        _print_changes(changes)
    if _are_any(changes):
        raise typer.Exit(CHANGES_CODE)


def apply_jobs(
    *,
    file: FileArgument,
    url: UrlOption = None,
    delete_missing: DeleteOption = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    fingerprint: Annotated[
        str | None,
        typer.Option("--fingerprint", show_default=False, help="Only what the plan with this fingerprint showed."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make groups and jobs as a file says: everything, or nothing if anything in it is wrong."""
    read = _read(file)
    with signed_in(url) as rest:
        given: dict[str, Any] = {"delete_missing": delete_missing}
        if not yes:
            planned = _send(rest, "plan", read, given)
            _print_changes(planned)
            if not _are_any(planned):
                return
            # Without a terminal there is nobody to ask, and the answer is no.
            typer.confirm("apply this?", abort=True, err=True)
            fingerprint = fingerprint or planned["fingerprint"]
        changes = _send(rest, "apply", read, {**given, "fingerprint": fingerprint})
    if as_json:
        print_json(changes)
    elif yes:
        _print_changes(changes)
    tell("applied" if _are_any(changes) else "nothing to do")


def _read(file: Path) -> "JobFile":
    from jobwheel.cli.job_file import read_job_file  # noqa: PLC0415 - as for an export

    return read_job_file(file)


def _send(rest: Rest, route: str, read: "JobFile", given: dict[str, Any]) -> dict[str, Any]:
    for name in ("delete_missing", "fingerprint"):
        if name in read.document:
            raise JobFileError(read.path, read.line_of(name), f"{name} is an option of the command, not of a file")
    try:
        changes: dict[str, Any] = rest.post(f"/api/v1/jobs/{route}", {**read.document, **given}, timeout_s=_PATIENCE_S)
    except RefusedError as error:
        if error.field is None or not error.field.startswith(("jobs", "groups")):
            raise
        line = read.line_of(error.field)
        raise JobFileError(read.path, line, f"{_job_of(read, error)}{error.message}") from error
    return changes


def _job_of(read: "JobFile", error: RefusedError) -> str:
    """The job that the refused field belongs to, unless the message names it."""
    at = (error.field or "").removeprefix("jobs[").partition("]")[0]
    jobs = read.document.get("jobs")
    if not (isinstance(jobs, list) and at.isascii() and at.isdigit() and int(at) < len(jobs)):
        return ""
    job = jobs[int(at)]
    name = f"{job.get('app_name')}/{job.get('key')}" if isinstance(job, dict) else ""
    return "" if not name or f"({name})" in error.message else f"{name}: "


def _are_any(changes: dict[str, Any]) -> bool:
    return bool(changes["new_groups"]) or any(
        each["action"] in ("create", "change", "delete") for each in changes["jobs"]
    )


def _print_changes(changes: dict[str, Any]) -> None:
    for app_name in changes["new_groups"]:
        print(f"+ group {one_line(app_name)}")
    for each in changes["jobs"]:
        if each["action"] in _SIGNS:
            name = one_line(f"{each['app_name']}/{each['key']}")
            print(f"{_SIGNS[each['action']]} {name} {_WORDS.get(each['action'], each['action'])}")
            for field in each["fields"]:
                _print_field(field, is_new=each["action"] == "create")
        if each["note"]:
            print(f"  {one_line(each['app_name'])}/{one_line(each['key'])}: {one_line(each['note'])}")
    print(_summary(changes))


def _print_field(field: dict[str, Any], *, is_new: bool) -> None:
    before, after = field["before"], field["after"]
    if isinstance(before, str) and isinstance(after, str) and ("\n" in before or "\n" in after):
        print(f"    {field['field']}:")
        lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))
        for line in lines[2:]:
            print(f"      {one_line(line)}")
        return
    shown = _shown(after) if is_new else f"{_shown(before)} → {_shown(after)}"
    print(f"    {field['field']}: {shown}")


def _shown(value: Any) -> str:
    if value is None:
        return "(default)"
    text = one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 120 else f"{text[:119]}…"


def _summary(changes: dict[str, Any]) -> str:
    counts = dict.fromkeys(("create", "change", "delete", "unchanged", "missing"), 0)
    for each in changes["jobs"]:
        counts[each["action"]] += 1
    missing = f", {counts['missing']} not in the file" if counts["missing"] else ""
    deleted = f", {counts['delete']} to delete" if counts["delete"] else ""
    words = f"{counts['create']} to create, {counts['change']} to change{deleted}, {counts['unchanged']} unchanged"
    return f"{words}{missing}\nfingerprint {changes['fingerprint']}"


def _assign_keys(rest: Rest, app_names: list[str]) -> None:
    """Give jobs without a key one that no other job of their group can have come by."""
    for group in _all(rest, "/api/v1/groups"):
        if app_names and group["app_name"] not in app_names:
            continue
        for job in _all(rest, "/api/v1/jobs", group_id=group["id"]):
            if job["key"] is None:
                key = f"job-{job['id']}"
                rest.patch(f"/api/v1/jobs/{job['id']}", {"key": key, "version": job["version"]})
                tell(f"job {job['id']} ({one_line(job['name'])}) has the key {key} now")


def _all(rest: Rest, path: str, **query: object) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    after: str | None = None
    while True:
        page = rest.get(path, {**query, "limit": _PAGE, "after": after})
        items += page["items"]
        after = page["next"]
        if after is None:
            return items
