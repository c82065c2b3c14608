"""`jobwheel tokens …` and `jobwheel groups token …`."""

from typing import Annotated

import typer

from jobwheel.cli.access import AfterOption, JsonOption, LimitOption, UrlOption, signed_in
from jobwheel.cli.group_names import GROUP_WAYS, GroupArgument, find_group, find_group_if
from jobwheel.cli.output import local_time, one_line, page_note, print_json, print_table, tell

TokenId = Annotated[int, typer.Argument(metavar="TOKEN", min=1, help="The token's id.")]

_NEVER = "never"


def list_tokens(
    url: UrlOption = None, limit: LimitOption = 50, after: AfterOption = None, as_json: JsonOption = False
) -> None:
    """List the tokens of programs; the tokens themselves are kept nowhere."""
    with signed_in(url) as rest:
        page = rest.get("/api/v1/tokens", {"limit": limit, "after": after})
    if as_json:
        print_json(page)
        return
    rows = [
        (
            each["id"],
            each["name"],
            each["access"],
            "all" if each["group_id"] is None else each["group_id"],
            local_time(each["expires_at"]) or _NEVER,
            each["created_by"],
        )
        for each in page["items"]
    ]
    print_table(("id", "name", "access", "group", "expires", "made by"), rows, "there are no tokens")
    page_note(page)


def new_token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the events call who carries it.")],
    url: UrlOption = None,
    access: Annotated[str, typer.Option("--access", help="read, write, or scripts: write, scripts included.")] = "read",
    group: Annotated[
        str | None,
        typer.Option(
            "--group", metavar="GROUP", show_default=False, help=f"For this group alone: {GROUP_WAYS} [default: all]."
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", show_default=False, help="Until when, as 2027-01-01T00:00:00Z [default: for ever]."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token for a program, and print it: it is shown this once only."""
    with signed_in(url) as rest:
        body = {"name": name, "access": access, "group_id": find_group_if(rest, group), "expires_at": expires}
        _print_new(rest.post("/api/v1/tokens", body), as_json=as_json)


def revoke_token(token_id: TokenId, url: UrlOption = None) -> None:
    """End the token of a program at once."""
    with signed_in(url) as rest:
        rest.delete(f"/api/v1/tokens/{token_id}")
    tell(f"the token {token_id} is revoked")


def list_group_tokens(group: GroupArgument, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """List the valid tokens of a group, masked."""
    with signed_in(url) as rest:
        found = rest.get(f"/api/v1/groups/{find_group(rest, group)}/tokens")
    if as_json:
        print_json(found)
        return
    rows = [
        (each["id"], each["token"], local_time(each["created_at"]), local_time(each["expires_at"]) or _NEVER)
        for each in found["items"]
    ]
    print_table(("id", "token", "made", "expires"), rows, "the group has no tokens")


def new_group_token(group: GroupArgument, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Make a group's first token, and print it: it is shown this once only."""
    with signed_in(url) as rest:
        _print_new(rest.post(f"/api/v1/groups/{find_group(rest, group)}/tokens"), as_json=as_json)


def rotate_group_token(
    group: GroupArgument,
    url: UrlOption = None,
    overlap: Annotated[
        int, typer.Option("--overlap", min=0, metavar="SECONDS", help="How long the old one is valid yet.")
    ] = 86_400,
    as_json: JsonOption = False,
) -> None:
    """Make a group's next token, and print it: it is shown this once only."""
    with signed_in(url) as rest:
        _print_new(
            rest.post(f"/api/v1/groups/{find_group(rest, group)}/tokens/rotate", {"overlap_s": overlap}),
            as_json=as_json,
        )


def revoke_group_token(group: GroupArgument, token_id: TokenId, url: UrlOption = None) -> None:
    """End a group's token at once; executors that came with it get no runs."""
    with signed_in(url) as rest:
        rest.delete(f"/api/v1/groups/{find_group(rest, group)}/tokens/{token_id}")
    tell(f"the token {token_id} of group {one_line(group)} is revoked")


def _print_new(made: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    # Alone on standard output, so that it can go into a file.
    print(one_line(str(made["token"])))
    tell(f"this is the token {made['id']}; it is shown this once only")
