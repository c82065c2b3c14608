"""What jobs are called at the command line: by their ids, by app name and key, or by their names."""

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote

import typer

from jobwheel.cli.errors import JobNameError, RefusedError
from jobwheel.cli.output import one_line
from jobwheel.cli.rest import Rest

_WAYS = "its id, app name and key (orders/settle), or its whole name"

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help=f"A job: {_WAYS}.")]
JobsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[JOB]...", help=f"Jobs, each by {_WAYS}.", show_default=False)
]
JobOption = Annotated[
    str | None, typer.Option("--job", metavar="JOB", show_default=False, help=f"Only runs of this job: {_WAYS}.")
]


def find_jobs(rest: Rest, texts: Sequence[str]) -> list[int]:
    """The ids of the jobs that are meant, each once.

    Raises:
        JobNameError: of one there is none, or there are several.
    """
    return list(dict.fromkeys(find_job(rest, text) for text in texts))


def find_job(rest: Rest, text: str) -> int:
    """The id of the job that is meant.

    Raises:
        JobNameError: there is none, or there are several.
    """
    if text.isascii() and text.isdigit():
        return int(text)
    app_name, slash, key = text.partition("/")
    if slash:
        try:
            path = f"/api/v1/groups/{quote(app_name, safe='')}/jobs/{quote(key, safe='')}"
            return int(rest.get(path)["id"])
        except RefusedError as error:
            if error.status != 404:
                raise
    return _find_by_name(rest, text)


def _find_by_name(rest: Rest, name: str) -> int:
    found: list[dict[str, Any]] = []
    after: str | None = None
    while True:
        page = rest.get("/api/v1/jobs", {"name": name, "limit": 500, "after": after})
        found += [job for job in page["items"] if job["name"] == name]
        after = page["next"]
        if after is None:
            break
    if not found:
        raise JobNameError(name, "is neither a job's id, nor an app name and key such as orders/settle, nor a name")
    if len(found) > 1:
        ids = ", ".join(str(job["id"]) for job in found[:20])
        raise JobNameError(one_line(name), f"is the name of several jobs; give the id of one of them: {ids}")
    return int(found[0]["id"])
