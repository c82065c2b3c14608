"""What a kind of channel is, and what it is given to send."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jobwheel.admin.alarms.http import HttpSender
from jobwheel.admin.alarms.mail_server import MailServer
from jobwheel.admin.alarms.settings import ChannelSetting
from jobwheel.kernel.clock import Clock


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm in the installation's language.

    Attributes:
        title: one line.
        lines: what is known, as names and values.
        link: where to read more; None if the installation does not know its own address.
        is_good: whether it tells that something works again.
        emails: the addresses of the job's own people.
        fields: the same for templates: each name of `FIELD_NAMES` with its text.
    """

    title: str
    lines: Sequence[tuple[str, str]]
    link: str | None
    is_good: bool
    emails: Sequence[str]
    fields: Mapping[str, str]

    @property
    def text(self) -> str:
        """Everything, as plain text."""
        return "\n".join((self.title, *(f"{name}: {value}" for name, value in self.lines)))


@dataclass(frozen=True, slots=True)
class ChannelTools:
    """What channels send with."""

    clock: Clock
    http: HttpSender
    mail: MailServer


class Channel(Protocol):
    """A channel with its settings."""

    async def send(self, alarm: Alarm) -> str:
        """Send one alarm; return what the far side said to it, in one line without secrets.

        May be called from one task at a time. It is cancelled when it takes too long.

        Raises:
            ChannelError: it was not taken; says why, without secrets.
        """
        ...


class ChannelKind(Protocol):
    """A kind of channel; plug-ins give one under the entry point `jobwheel.alarms`."""

    @property
    def settings(self) -> Sequence[ChannelSetting]:
        """What can be set."""
        ...

    @property
    def reads_emails(self) -> bool:
        """Whether it sends to the addresses of the job's own people, too."""
        ...

    def make(self, values: Mapping[str, Any], tools: ChannelTools) -> Channel:
        """A channel with these settings, which `read_values` has checked. Sends nothing yet.

        Raises:
            SettingRefusedError: settings that do not go together.
        """
        ...
