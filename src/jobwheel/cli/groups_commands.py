"""`jobwheel groups …`."""

from typing import Annotated, Any

import typer

from jobwheel.cli.access import AfterOption, JsonOption, LimitOption, UrlOption, signed_in
from jobwheel.cli.group_names import GroupArgument, find_group
from jobwheel.cli.output import local_time, one_line, page_note, print_json, print_table

Address = Annotated[str, typer.Argument(metavar="ADDRESS", help="A live address of the group.")]

_STATES = {
    "alive": "alive",
    "refused": "there, and refuses the admin",
    "no_answer": "reached, and gives no answer",
    "unreachable": "unreachable",
}
_COLUMNS = ("id", "app name", "address", "state", "running", "queued", "last beat")


def list_groups(
    url: UrlOption = None, limit: LimitOption = 50, after: AfterOption = None, as_json: JsonOption = False
) -> None:
    """List groups and the executors that are live in each."""
    with signed_in(url) as rest:
        page = rest.get("/api/v1/groups", {"limit": limit, "after": after})
    if as_json:
        print_json(page)
        return
    print_table(_COLUMNS, [row for group in page["items"] for row in _rows(group)], "there are no groups")
    page_note(page)


def drain(group: GroupArgument, address: Address, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Give an executor no new runs until it is started anew; its runs go on."""
    _change(group, address, "drain", "gets no new runs; those under way go on", url, as_json=as_json)


def undrain(group: GroupArgument, address: Address, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Give an executor new runs again."""
    _change(group, address, "undrain", "gets new runs again", url, as_json=as_json)


def probe(group: GroupArgument, address: Address, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """See whether the admin reaches an executor; the exit code is 1 if not."""
    with signed_in(url) as rest:
        found = rest.post(f"/api/v1/groups/{find_group(rest, group)}/probe", {"address": address})
    if as_json:
        print_json(found)
    else:
        why = f": {one_line(found['message'])}" if found["message"] else ""
        print(f"{one_line(found['address'])} is {_STATES[found['state']]} ({found['took_ms']} ms){why}")
    if found["state"] != "alive":
        raise typer.Exit(1)


def _change(name: str, address: str, change: str, effect: str, url: str | None, *, as_json: bool) -> None:
    with signed_in(url) as rest:
        group = rest.post(f"/api/v1/groups/{find_group(rest, name)}/{change}", {"address": address})
    if as_json:
        print_json(group)
    else:
        print(f"{one_line(address)} of {one_line(group['app_name'])} {effect}")


def _rows(group: dict[str, Any]) -> list[tuple[object, ...]]:
    """A row for each live address; one without an address for a group that has none."""
    start = (group["id"], group["app_name"])
    rows: list[tuple[object, ...]] = [
        (
            *(*start, each["address"], "draining" if each["draining"] else "live"),
            *((each["load"] or {}).get(name, "") for name in ("running", "queued")),
            local_time(each["last_beat_at"]),
        )
        for each in group["live_addresses"]
    ]
    return rows or [(*start, "", "no executor", "", "", "")]
