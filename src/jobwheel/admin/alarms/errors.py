"""Why an alarm did not reach anybody."""


class ChannelError(Exception):
    """An alarm was not taken: why, in one line without secrets."""
