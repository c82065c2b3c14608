"""Which addresses webhooks may go to."""

import pytest

from jobwheel.admin.alarms.addresses import is_public


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "10.0.0.7",
        "172.16.3.4",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fd00::7",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.7",
        "64:ff9b::a00:7",
        "64:ff9b::7f00:1",
        "2002:a00:7::1",
    ],
)
def test_those_of_one_machine_or_one_network_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)
def test_those_of_the_internet_are(address: str) -> None:
    assert is_public(address)
