"""`jobwheel jobs show`, `events`, `create`, `set` and `delete`: one job, without a file."""

import json
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from jobwheel.cli.access import AfterOption, JsonOption, LimitOption, UrlOption, signed_in
from jobwheel.cli.errors import JobNameError
from jobwheel.cli.job_names import JobArgument, find_job
from jobwheel.cli.output import local_time, one_line, page_note, print_json, print_table
from jobwheel.cli.rest import Rest

_FIELD_HELP = (
    "A field of the job, as in the API, such as retry_count=3; lists with commas, or JSON; "
    "@FILE reads it from a file, nothing takes it away."
)
FieldsArgument = Annotated[list[str], typer.Argument(metavar="FIELD=VALUE...", help=_FIELD_HELP)]
OptionalFieldsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[FIELD=VALUE]...", help=_FIELD_HELP, show_default=False)
]

JSON_FIELDS: Final = frozenset(
    {
        "alarm_settings",
        "child_job_ids",
        "group_id",
        "pause_windows",
        "retention_days",
        "retry_count",
        "retry_interval_s",
        "retry_most_s",
        "run_limit",
        "running",
        "tags",
        "timeout_s",
        "version",
    }
)
"""Fields that are no texts; a text is taken as it is, though it may look like a number."""

NULL_FIELDS: Final = frozenset({"anchor_at", "key", "time_zone", "valid_from", "valid_until"})
"""Texts that a job may have none of, which is not the empty one."""

_LISTS: Final = frozenset({"child_job_ids", "pause_windows", "tags"})
_INSTANTS: Final = frozenset({"last_planned_at", "next_planned_at", "created_at", "updated_at"})
_EVENT_COLUMNS: Final = ("at", "what", "who", "run", "details")


def show_job(job: JobArgument, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Print the fields of a job."""
    with signed_in(url) as rest:
        found = rest.get(f"/api/v1/jobs/{find_job(rest, job)}")
    if as_json:
        print_json(found)
        return
    rows = [(name, _shown(name, value)) for name, value in found.items()]
    print_table(("field", "value"), [row for row in rows if row[1]], "")


def job_events(
    job: JobArgument,
    url: UrlOption = None,
    limit: LimitOption = 20,
    after: AfterOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what happened to a job and who did it, newest first."""
    with signed_in(url) as rest:
        page = rest.get(f"/api/v1/jobs/{find_job(rest, job)}/events", {"limit": limit, "after": after})
    if as_json:
        print_json(page)
        return
    rows = [
        (local_time(each["at"]), each["kind"], each["actor"], each["run_id"], _details(each["details"]))
        for each in page["items"]
    ]
    print_table(_EVENT_COLUMNS, rows, "there are no events")
    page_note(page)


def create_job(
    *,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The app name of its group, or the group's id.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called.")],
    fields: OptionalFieldsArgument = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a job. It is stopped, unless running=true is among the fields."""
    body = {"schedule_type": "NONE", **read_fields(fields or []), "name": name}
    with signed_in(url) as rest:
        made = rest.post("/api/v1/jobs", {**body, "group_id": _group_id(rest, group)})
    _tell(made, "is made", as_json=as_json)


def set_job(job: JobArgument, fields: FieldsArgument, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Change fields of a job; the others stay as they are."""
    body = read_fields(fields)
    if {"running", "status"} & set(body):
        raise typer.BadParameter(
            "its schedule is started and stopped by `jobwheel jobs start` and `jobwheel jobs stop`"
        )
    with signed_in(url) as rest:
        before = rest.get(f"/api/v1/jobs/{find_job(rest, job)}")
        changed = rest.patch(f"/api/v1/jobs/{before['id']}", {"version": before["version"], **body})
    differs = [name for name in body if before.get(name) != changed.get(name)]
    _tell(changed, f"is changed ({', '.join(differs)})" if differs else "was so already", as_json=as_json)


def delete_job(
    job: JobArgument,
    url: UrlOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a job and its runs; its events stay."""
    with signed_in(url) as rest:
        found = rest.get(f"/api/v1/jobs/{find_job(rest, job)}")
        if not yes:
            words = f"delete job {found['id']} ({one_line(found['name'])}) and its runs?"
            typer.confirm(words, abort=True, err=True)
        rest.delete(f"/api/v1/jobs/{found['id']}")
    print(f"job {found['id']} ({one_line(found['name'])}) is deleted")


def read_fields(texts: list[str]) -> dict[str, Any]:
    """The fields that `NAME=VALUE` texts give; whether there are such is the admin's to say."""
    fields: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{one_line(text)} is not FIELD=VALUE")
        if name in fields:
            raise typer.BadParameter(f"{one_line(name)} is given twice")
        fields[name] = _value(name, _from_file(name, Path(value[1:])) if value.startswith("@") else value)
    return fields


def _from_file(name: str, path: Path) -> str:
    """A file's text; its last line ends for the editor's sake alone, unless it is a script's."""
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{path} is not UTF-8: {error}") from error
    return text if name == "glue_source" else text.rstrip("\n")


def _value(name: str, text: str) -> Any:
    if name not in JSON_FIELDS:
        return None if name in NULL_FIELDS and not text else text
    if not text.strip():
        return [] if name in _LISTS else None
    try:
        read = json.loads(text)
    except ValueError:
        # Words with commas; what is neither is the admin's to refuse.
        return _list(name, text) if name in _LISTS else text
    return read if name not in _LISTS or isinstance(read, list) else _list(name, text)


def _list(name: str, text: str) -> list[Any]:
    words = [word.strip() for word in text.split(",")]
    if name == "child_job_ids":
        return [int(word) if word.isascii() and word.isdigit() else word for word in words]
    return words


def _group_id(rest: Rest, text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    after: str | None = None
    while True:
        page = rest.get("/api/v1/groups", {"limit": 500, "after": after})
        for group in page["items"]:
            if group["app_name"] == text:
                return int(group["id"])
        after = page["next"]
        if after is None:
            raise JobNameError(text, "is neither the app name nor the id of a group: `jobwheel groups list`")


def _shown(name: str, value: Any) -> str:
    if value is None or value in ("", []):
        return ""
    if name == "last_run":
        return f"run {value['id']}: {value['outcome']} ({local_time(value['ended_at'])})"
    if name in _INSTANTS:
        return local_time(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _details(details: dict[str, Any]) -> str:
    text = ", ".join(f"{name}: {_shown('', value)}" for name, value in details.items())
    return text if len(text) <= 120 else f"{text[:119]}…"


def _tell(job: dict[str, Any], effect: str, *, as_json: bool) -> None:
    if as_json:
        print_json(job)
        return
    next_run = f", next run {local_time(job['next_planned_at'])}" if job["next_planned_at"] else ""
    print(f"job {job['id']} ({one_line(job['name'])}) {effect}; it is {job['status']}{next_run}")
