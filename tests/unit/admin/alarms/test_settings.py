"""Settings of channels: checked with the valid ones named, masked, and kept when the mask is given back."""

from typing import Any

import pytest

from jobwheel.admin.alarms.kinds import own_kinds
from jobwheel.admin.alarms.settings import (
    ChannelSetting,
    SettingRefusedError,
    SettingType,
    masked,
    read_emails,
    read_values,
)

SETTINGS = (
    ChannelSetting("url", SettingType.URL, required=True),
    ChannelSetting("secret", SettingType.SECRET),
    ChannelSetting("method", SettingType.TEXT, default="POST", choices=("POST", "PUT")),
    ChannelSetting("port", SettingType.NUMBER),
    ChannelSetting("headers", SettingType.HEADERS),
    ChannelSetting("to", SettingType.EMAILS),
    ChannelSetting("quiet", SettingType.FLAG),
    ChannelSetting("body", SettingType.LINES),
)
STORED = {
    "url": "https://hooks.example.com/T0/secret-in-path?key=7",
    "secret": "s-7351",
    "method": "POST",
    "headers": {"Authorization": "Bearer 9", "X-Team": "a"},
}
SHOWN = {
    "url": "https://hooks.example.com/***",
    "secret": "***",
    "method": "POST",
    "headers": {"Authorization": "***", "X-Team": "***"},
}


def test_secrets_are_masked() -> None:
    assert masked(SETTINGS, STORED) == SHOWN


def test_of_a_kind_that_is_not_known_nothing_is_shown() -> None:
    assert masked((), STORED) == dict.fromkeys(STORED, "***")


def test_what_is_given_back_masked_stays_as_it_is() -> None:
    assert read_values(SETTINGS, SHOWN, STORED) == STORED
    changed = read_values(SETTINGS, {"headers": {"Authorization": "***", "X-Team": "b"}}, STORED)
    assert changed["headers"] == {"Authorization": "Bearer 9", "X-Team": "b"}


def test_a_null_takes_a_value_away_and_defaults_come_back() -> None:
    values = read_values(SETTINGS, {"secret": None, "method": None}, {**STORED, "method": "PUT"})
    assert "secret" not in values
    assert values["method"] == "POST"


@pytest.mark.parametrize(
    ("given", "name", "words"),
    [
        ({"uri": "x"}, "uri", "valid ones are url, secret, method"),
        ({"url": "ftp://x/"}, "url", "http"),
        ({"url": "https://user:word@x/"}, "url", "credentials"),
        ({"url": "https://other.example.com/***"}, "url", "give it whole"),
        ({"url": 7}, "url", "not a text"),
        ({"secret": ""}, "secret", "is empty"),
        ({"secret": "x" * 1001}, "secret", "1001 characters"),
        ({"secret": "a\nb"}, "secret", "not allowed"),
        ({"method": "GET"}, "method", "not one of POST, PUT"),
        ({"port": 0}, "port", "1-65535"),
        ({"port": True}, "port", "whole number"),
        ({"port": "25"}, "port", "whole number"),
        ({"quiet": 1}, "quiet", "neither true nor false"),
        ({"to": "a@b.c"}, "to", "not a list"),
        ({"to": ["nobody"]}, "to", "not an e-mail address"),
        ({"to": ["a@b.c\r\nBcc: x@y.z"]}, "to", "not allowed"),
        ({"to": ["a@b.c"] * 51}, "to", "51 addresses"),
        ({"headers": {"Host": "x"}}, "headers", "not a header"),
        ({"headers": {"X-A": "a\r\nX-B: b"}}, "headers", "X-A"),
        ({"headers": {"X-New": "***"}}, "headers", "X-New"),
        ({"headers": ["X-A"]}, "headers", "not an object"),
        ({"body": 5}, "body", "not a text"),
    ],
)
def test_bad_ones_are_named(given: dict[str, Any], name: str, words: str) -> None:
    with pytest.raises(SettingRefusedError, match=words) as caught:
        read_values(SETTINGS, given, STORED)
    assert caught.value.name == name


def test_a_mask_is_no_secret() -> None:
    with pytest.raises(SettingRefusedError, match="not stored"):
        read_values(SETTINGS, {"url": "https://x.example/", "secret": "***"}, {})


def test_what_is_required_is_named() -> None:
    with pytest.raises(SettingRefusedError, match="url: is required"):
        read_values(SETTINGS, {}, {})


def test_addresses_in_a_text() -> None:
    assert read_emails("a@b.example; c@d.example,, nobody , a@b.example") == ("a@b.example", "c@d.example")


def test_whatever_may_hold_a_secret_is_masked_in_every_kind() -> None:
    for kind in own_kinds().values():
        for setting in kind.settings:
            if setting.name in ("url", "password", "secret", "headers"):
                assert setting.type in (SettingType.URL, SettingType.SECRET, SettingType.HEADERS)
