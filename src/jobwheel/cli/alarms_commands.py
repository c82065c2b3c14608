"""`jobwheel alarms …`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from jobwheel.cli.access import JsonOption, UrlOption, signed_in
from jobwheel.cli.group_names import ChannelArgument, find_channel
from jobwheel.cli.output import one_line, print_json, print_table

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        show_default=False,
        help="A setting of its kind; VALUE is JSON or a text, @FILE reads it from a file, nothing takes it away.",
    ),
]
IsDefault = Annotated[
    bool | None,
    typer.Option("--default/--no-default", show_default=False, help="For jobs that name no channel, and for groups."),
]
ForAdmins = Annotated[
    bool | None,
    typer.Option("--admins/--no-admins", show_default=False, help="For troubles of the admin itself."),
]
Disabled = Annotated[
    bool | None, typer.Option("--disable/--enable", show_default=False, help="Send nothing through it, or again.")
]

_COLUMNS = ("id", "name", "kind", "used for", "settings")
# A password of digits is a text all the same, and so is a body that is JSON.
_TEXTS = frozenset({"body", "password", "secret", "username"})
_PATH = "/api/v1/alarm-channels"


def list_channels(url: UrlOption = None, as_json: JsonOption = False) -> None:
    """List the channels; secrets are masked."""
    with signed_in(url) as rest:
        page = rest.get(_PATH)
    if as_json:
        print_json(page)
        return
    print_table(_COLUMNS, [_row(each) for each in page["items"]], "there are no channels: jobwheel alarms create")


def create_channel(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called.")],
    kind: Annotated[str, typer.Argument(metavar="KIND", help="mail, webhook, dingtalk, wecom, feishu, lark, slack, …")],
    *,
    settings: Settings = None,
    is_default: IsDefault = None,
    for_admins: ForAdmins = None,
    disabled: Disabled = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a channel."""
    body = {"name": name, "kind": kind, **_fields(settings, is_default, for_admins, disabled)}
    with signed_in(url) as rest:
        channel = rest.post(_PATH, body)
    _tell(channel, "is made; try it with jobwheel alarms test", as_json=as_json)


def update_channel(
    channel: ChannelArgument,
    name: Annotated[str | None, typer.Option("--name", show_default=False, help="What it is called.")] = None,
    *,
    settings: Settings = None,
    is_default: IsDefault = None,
    for_admins: ForAdmins = None,
    disabled: Disabled = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change what is given; the rest stays as it is."""
    body = _fields(settings, is_default, for_admins, disabled)
    if name is not None:
        body["name"] = name
    if not body:
        raise typer.BadParameter("nothing to change is given")
    with signed_in(url) as rest:
        changed = rest.patch(f"{_PATH}/{find_channel(rest, channel)}", body)
    _tell(changed, "is changed", as_json=as_json)


def delete_channel(channel: ChannelArgument, url: UrlOption = None) -> None:
    """Delete a channel; what waits for it is not sent."""
    with signed_in(url) as rest:
        rest.delete(f"{_PATH}/{find_channel(rest, channel)}")
    print(f"channel {one_line(channel)} is deleted")


def try_channel(channel: ChannelArgument, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Send a test message, and print what the far side said."""
    with signed_in(url) as rest:
        result = rest.post(f"{_PATH}/{find_channel(rest, channel)}/test")
    if as_json:
        print_json(result)
    else:
        print(f"{'sent' if result['sent'] else 'not sent'}: {one_line(result['answer'])}")
    if not result["sent"]:
        raise typer.Exit(1)


def _fields(
    settings: list[str] | None, is_default: bool | None, for_admins: bool | None, disabled: bool | None
) -> dict[str, Any]:
    flags = {"is_default": is_default, "for_admins": for_admins, "disabled": disabled}
    body: dict[str, Any] = {name: flag for name, flag in flags.items() if flag is not None}
    if settings:
        body["settings"] = dict(_setting(each) for each in settings)
    return body


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{one_line(text)} is not NAME=VALUE", param_hint="--set")
    if value.startswith("@"):
        return name, Path(value[1:]).read_text("utf-8").rstrip("\n")
    if not value:
        return name, None
    try:
        read = json.loads(value)
    except ValueError:
        return name, value
    return name, value if name in _TEXTS or isinstance(read, str) else read


def _row(channel: dict[str, Any]) -> tuple[object, ...]:
    uses = [words for name, words in (("is_default", "default"), ("for_admins", "admins")) if channel[name]]
    state = ["disabled"] if channel["disabled"] else uses
    settings = " ".join(f"{name}={_shown(value)}" for name, value in channel["settings"].items())
    return (channel["id"], channel["name"], channel["kind"], ", ".join(state), settings)


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _tell(channel: dict[str, Any], effect: str, *, as_json: bool) -> None:
    if as_json:
        print_json(channel)
    else:
        print(f"channel {channel['id']} ({one_line(channel['name'])}) {effect}")
