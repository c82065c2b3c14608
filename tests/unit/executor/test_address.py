import socket
from pathlib import Path
from typing import Any

import pytest

from jobwheel.executor import interfaces
from jobwheel.executor.address import choose_address, interface_towards
from jobwheel.executor.errors import BindError, SettingError
from jobwheel.executor.server import bind
from jobwheel.executor.settings import resolve

TOKEN = "Qx7-made-up"


def chosen(**arguments: object) -> tuple[str, str, bool]:
    settings = resolve({"app_name": "demo", "admin": "http://127.0.0.1:8080", "access_token": TOKEN, **arguments}, {})
    address = choose_address(settings, 9998)
    return address.url, address.reason, address.warning is not None


def test_an_address_goes_before_an_ip_and_this_before_what_is_found_out() -> None:
    assert chosen(address="http://a/x", ip="10.0.0.7") == ("http://a/x", "setting address", False)
    assert chosen(ip="10.0.0.7", host="0.0.0.0") == ("http://10.0.0.7:9998/", "setting ip", False)
    assert chosen(ip="fe80::1") == ("http://[fe80::1]:9998/", "setting ip", False)
    assert chosen(ip="worker-7.example") == ("http://worker-7.example:9998/", "setting ip", False)
    assert chosen(host="10.0.0.8") == ("http://10.0.0.8:9998/", "setting host", False)


def test_an_interface_or_a_subnet_goes_before_what_is_found_out() -> None:
    for network in ("lo", "127.0.0.0/8", "nothing0,203.0.113.0/24,127.0.0.0/30"):
        url = "http://127.0.0.1:9998/"
        assert chosen(network=network, host="0.0.0.0", admin="http://192.0.2.1") == (url, "setting network", False)
    assert chosen(network="lo", ip="10.0.0.7", host="0.0.0.0")[1] == "setting ip"


def test_addresses_of_ipv6_are_for_a_server_that_listens_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "if_inet6"
    table.write_text(
        "fe8000000000000002aabbfffe000001 02 40 20 80     eth7\n20010db8000000000000000000000007 02 40 00 80     eth7\n"
    )
    monkeypatch.setattr(interfaces, "_IPV6_TABLE", table)
    assert chosen(network="2001:db8::/32", host="::")[0] == "http://[2001:db8::7]:9998/"
    assert chosen(network="eth7", host="::")[0] == "http://[2001:db8::7]:9998/"
    with pytest.raises(SettingError, match="eth7"):
        chosen(network="eth7", host="0.0.0.0")
    table.unlink()
    assert ("lo", "127.0.0.1") in interfaces.interface_addresses(ipv6=True)


def test_a_network_that_the_machine_is_not_in_is_an_error_that_names_those_it_is_in() -> None:
    with pytest.raises(SettingError, match=r"network is '203.0.113.0/24', but must be .*: .*lo 127\.0\.0\.1"):
        chosen(network="203.0.113.0/24", host="0.0.0.0")


@pytest.mark.parametrize(
    ("network", "host"), [("10.0.0.0/99", "0.0.0.0"), ("a b", "0.0.0.0"), ("eth0,", "::"), ("eth0", "127.0.0.1")]
)
def test_bad_networks(network: str, host: str) -> None:
    with pytest.raises(SettingError, match="network"):
        chosen(network=network, host=host)


@pytest.mark.parametrize(("host", "url"), [("127.0.0.1", "http://127.0.0.1:9998/"), ("::1", "http://[::1]:9998/")])
def test_loopback_is_registered_as_it_is_and_doubted_for_an_admin_elsewhere(host: str, url: str) -> None:
    assert chosen(host=host) == (url, "host is loopback", False)
    assert chosen(host=host, admin="http://192.0.2.1:8080") == (url, "host is loopback", True)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_on_every_interface_the_one_towards_the_admin_is_registered(host: str) -> None:
    assert chosen(host=host)[0] == "http://127.0.0.1:9998/"
    assert "http://127.0.0.1:8080" in chosen(host=host)[1]


def test_an_admin_that_cannot_be_looked_up_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = socket.getaddrinfo

    def lookup(host: str, *arguments: Any) -> Any:
        if host == "nowhere.invalid":
            raise socket.gaierror(socket.EAI_NONAME, "not known")
        return looked_up(host, *arguments)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    both = ["http://nowhere.invalid", "http://127.0.0.1:8080"]
    assert chosen(host="0.0.0.0", admin=both)[1] == "the interface that reaches http://127.0.0.1:8080"
    url, reason, doubtful = chosen(host="0.0.0.0", admin=both[:1])
    assert (url, reason, doubtful) == ("http://127.0.0.1:9998/", "no better one is known", True)
    assert interface_towards("nowhere.invalid", "0.0.0.0") is None


def test_a_server_on_ipv4_alone_is_not_registered_with_ipv6() -> None:
    assert interface_towards("::1", "0.0.0.0") is None
    assert interface_towards("127.0.0.1", "::") == "127.0.0.1"


def test_the_next_free_port_skips_those_in_use() -> None:
    with bind("127.0.0.1", 0) as first, bind("127.0.0.1", -7) as second:
        assert 9999 <= first.getsockname()[1] < second.getsockname()[1]


def test_a_port_that_is_taken_is_not_taken_twice() -> None:
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(BindError, match="choose another `port`"):
            bind("127.0.0.1", port)


def test_a_host_that_cannot_be_looked_up_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def lookup(*arguments: Any, **options: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "not known")

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    with pytest.raises(BindError, match="not known; check `host`") as caught:
        bind("nowhere.invalid", 9999)
    assert caught.value.field == "host"
