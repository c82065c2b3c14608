"""What groups and alarm channels are called at the command line: by their ids or their names."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import typer

from jobwheel.cli.errors import ChannelNameError, GroupNameError
from jobwheel.cli.rest import Rest

GROUP_WAYS: Final = "its id or its app name"
"""How a group may be named, for help texts."""

GroupArgument = Annotated[str, typer.Argument(metavar="GROUP", help=f"A group: {GROUP_WAYS}.")]
GroupRunsOption = Annotated[
    str | None,
    typer.Option(
        "--group", metavar="GROUP", show_default=False, help=f"Only runs of the jobs of this group: {GROUP_WAYS}."
    ),
]
ChannelArgument = Annotated[str, typer.Argument(metavar="CHANNEL", help="A channel: its id or its name.")]

_PAGE: Final = 500


def find_group(rest: Rest, text: str) -> int:
    """The id of the group that is meant; a number is an id.

    Raises:
        GroupNameError: there is none of this app name.
    """
    if _is_id(text):
        return int(text)
    for group in _groups(rest):
        if group["app_name"] == text:
            return int(group["id"])
    raise GroupNameError(text)


def find_group_if(rest: Rest, text: str | None) -> int | None:
    """The same where a group need not be given."""
    return None if text is None else find_group(rest, text)


def find_channels(rest: Rest, texts: Sequence[str]) -> list[int]:
    """The ids of the alarm channels that are meant, each once; a number is an id.

    Raises:
        ChannelNameError: there is none of a name.
    """
    names: dict[str, int] = {}
    if not all(map(_is_id, texts)):
        names = {channel["name"]: channel["id"] for channel in rest.get("/api/v1/alarm-channels")["items"]}
    for text in texts:
        if not _is_id(text) and text not in names:
            raise ChannelNameError(text, names)
    return list(dict.fromkeys(int(text) if _is_id(text) else names[text] for text in texts))


def find_channel(rest: Rest, text: str) -> int:
    """The same of one."""
    return find_channels(rest, [text])[0]


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _groups(rest: Rest) -> Iterator[dict[str, Any]]:
    after: str | None = None
    while True:
        page = rest.get("/api/v1/groups", {"limit": _PAGE, "after": after})
        yield from page["items"]
        after = page["next"]
        if after is None:
            return
