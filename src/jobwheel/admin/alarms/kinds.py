"""The kinds of channels by name: ours, and those of plug-ins."""

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from jobwheel.admin.alarms.channel import ChannelKind
from jobwheel.admin.alarms.dingtalk import DingTalk
from jobwheel.admin.alarms.feishu import Feishu
from jobwheel.admin.alarms.mail import Mail
from jobwheel.admin.alarms.slack import Slack
from jobwheel.admin.alarms.webhook import Webhook
from jobwheel.admin.alarms.wecom import WeCom
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

ENTRY_POINTS: Final = "jobwheel.alarms"


def own_kinds() -> dict[str, ChannelKind]:
    """The kinds that come with the program."""
    return {
        "mail": Mail(),
        "webhook": Webhook(),
        "dingtalk": DingTalk(),
        "wecom": WeCom(),
        "feishu": Feishu(),
        "lark": Feishu(),
        "slack": Slack(),
    }


def all_kinds(plugged: Iterable[EntryPoint] | None = None) -> Mapping[str, ChannelKind]:
    """Every kind. A plug-in that cannot be loaded is logged and left out: alarms of the others are worth more.

    Args:
        plugged: the plug-ins; None = those that are installed. Each is a class or a function without arguments that
            makes a `ChannelKind`.
    """
    kinds: dict[str, ChannelKind] = {}
    for each in entry_points(group=ENTRY_POINTS) if plugged is None else plugged:
        try:
            kinds[each.name] = each.load()()
        except Exception as error:  # noqa: BLE001 - other people's code, which may fail in any way
            log.error("alarms.plug_in_failed", kind=each.name, error=repr(error))  # noqa: TRY400 - not our traceback
    return {**kinds, **own_kinds()}
