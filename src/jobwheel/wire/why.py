"""Why a request had no usable answer, in sentences that can be said in another language."""

from enum import StrEnum
from typing import NamedTuple


class Why(StrEnum):
    """Each sentence in English; `{}` stands for its facts, in this order."""

    # Of the address: nothing was sent there.
    URL_TEXT = "it is empty, or holds a space, a control character or one outside ASCII"
    NO_URL = "it is no URL ({})"
    SCHEME = "it must begin with http:// or https://"
    CREDENTIALS = "credentials in a URL are not sent"
    PORT_0 = "port 0 cannot be connected to"
    NO_HOST = "it names no host"
    NO_IPV6 = "its host is no IPv6 address ({})"
    IPV6_ZONE = "an IPv6 address with a zone means something on one machine alone"
    HOST_CHARACTER = "its host holds a character that no host name has"
    # Of the request: nor was it.
    HEADER_NAME = "the header {} cannot be sent: the name is not allowed"
    HEADER_VALUE = "the header {} cannot be sent: its value holds a forbidden character"
    NOT_RUNNING = "the client is not running"
    # Of the connection.
    NO_CONNECTION = "no connection within {} s"
    CLOSED_AT_ONCE = "the connection was closed as soon as it was made"
    STOPPED = "the client was stopped"
    NO_REPLY = "no reply in time"
    INCOMPLETE = "the connection was closed before the reply was complete"
    LOST = "the connection was lost ({})"
    CLOSED = "the connection was closed"
    # Of the reply.
    OTHER_PROTOCOL = "it switched to another protocol"
    NO_HTTP = "the reply is no HTTP ({})"
    TOO_LARGE = "the reply is larger than {} bytes, or its head than {}"
    PROXY = "a proxy answered HTTP {}"
    ELSEWHERE = "HTTP {}: it points elsewhere, where runs are not sent; give the executor's own address"
    EMPTY = "an empty answer (HTTP {})"
    UNREADABLE = "unreadable answer (HTTP {}): {}; it begins {}"
    NEITHER_PATH = "HTTP {}: it knows neither /run nor /trigger"
    UNKNOWN_PATH = "HTTP {}: it does not know {}"

    def because(self, *facts: object) -> "Cause":
        """The sentence with its facts."""
        return Cause(self, tuple(map(str, facts)))


class Cause(NamedTuple):
    """A sentence and its facts; as a text, in English."""

    why: Why
    facts: tuple[str, ...]

    def __str__(self) -> str:
        return self.why.format(*self.facts)
