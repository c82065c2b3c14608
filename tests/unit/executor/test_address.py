import socket
from typing import Any

import pytest

from jobwheel.executor.address import choose_address, interface_towards
from jobwheel.executor.errors import BindError
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
