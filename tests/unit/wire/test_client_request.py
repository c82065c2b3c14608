import pytest

from jobwheel.wire.client_request import join_url, parse_target, request_bytes, request_head
from jobwheel.wire.errors import UnreachableError


@pytest.mark.parametrize(
    ("url", "origin", "path", "host"),
    [
        ("http://10.0.0.7:9999/run", ("http", "10.0.0.7", 9999), "/run", "10.0.0.7:9999"),
        ("http://executor.example", ("http", "executor.example", 80), "/", "executor.example"),
        ("http://executor.example:80/a//b/?q=1&r=%20#part", ("http", "executor.example", 80), "/a//b/?q=1&r=%20",
         "executor.example"),
        ("https://Executor.Example/x", ("https", "executor.example", 443), "/x", "executor.example"),
        ("https://executor.example:80/x", ("https", "executor.example", 80), "/x", "executor.example:80"),
        ("HTTP://my_service:8080/x", ("http", "my_service", 8080), "/x", "my_service:8080"),
        ("http://[fd00::7]:9999/run", ("http", "fd00::7", 9999), "/run", "[fd00::7]:9999"),
        ("http://[::1]/run", ("http", "::1", 80), "/run", "[::1]"),
    ],
)  # fmt: skip
def test_takes_urls_apart(url: str, origin: tuple[str, str, int], path: str, host: str) -> None:
    target = parse_target(url)
    assert target.origin == origin
    assert target.head == f"POST {path} HTTP/1.1\r\nHost: {host}\r\n"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "empty"),
        ("http://host/a b", "space"),
        ("http://host/a\r\nX-Evil: 1", "control character"),
        ("http://host/a\tb", "control character"),
        ("http://host\n.example/", "control character"),
        ("http://höst/", "ASCII"),
        ("http://host/ünterlagen", "ASCII"),
        ("ftp://host/", "http:// or https://"),
        ("//host/", "http:// or https://"),
        ("host:9999/", "http:// or https://"),
        ("http:///run", "no host"),
        ("http://:80/run", "no host"),
        ("http://user@host/", "credentials"),
        ("http://@host/", "credentials"),
        ("http://good.example\\@evil.example/", "credentials"),
        ("http://good.example\\.evil.example/", "no host name has"),
        ("http://good.example,evil.example/", "no host name has"),
        ("http://host%00.example/", "no host name has"),
        ("http://host:tcp/", "no URL"),
        ("http://host:65536/", "no URL"),
        ("http://host:-1/", "no URL"),
        ("http://host:0/", "port 0"),
        ("http://[::1/", "no URL"),
        ("http://[::g]/", "IPv6|no URL"),
        ("http://[fe80::1%25eth0]/", "IPv6|no URL"),
    ],
)
def test_refuses_what_is_no_address_before_anything_is_sent(url: str, reason: str) -> None:
    with pytest.raises(UnreachableError, match=reason):
        parse_target(url)


def test_the_refusal_of_credentials_does_not_show_them() -> None:
    with pytest.raises(UnreachableError) as caught:
        parse_target("http://bob:willow-77@host/run")
    assert "willow-77" not in str(caught.value)
    assert "host/run" in str(caught.value)


def test_a_request_is_head_headers_length_and_body() -> None:
    target = parse_target("http://host/run")
    head = request_head("http://host/run", target, {"X-One": "1", "X-Two": "caf\xe9"})
    assert request_bytes(head, b"{}") == (
        b"POST /run HTTP/1.1\r\nHost: host\r\nX-One: 1\r\nX-Two: caf\xe9\r\nContent-Length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Token", "willow-77\r\nX-Evil: 1"),
        ("X-Token", "willow-77\n"),
        ("X-Token", "willow-77\r"),
        ("X-Token", "willow-77\0"),
        ("X-Token", "willow-77\u2028"),
    ],
)
def test_a_header_value_cannot_begin_another_header_and_is_not_shown(name: str, value: str) -> None:
    with pytest.raises(UnreachableError, match="X-Token") as caught:
        request_head("http://host/", parse_target("http://host/"), {name: value})
    assert "willow" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["", "X Token", "X-Token:", "X-Token\r\nX", "Ünique", "Host", "content-length", "Transfer-Encoding"]
)
def test_a_header_name_can_neither_break_out_nor_frame_the_request(name: str) -> None:
    with pytest.raises(UnreachableError, match="name is not allowed"):
        request_head("http://host/", parse_target("http://host/"), {name: "1"})


@pytest.mark.parametrize(
    ("root", "path", "url"),
    [
        ("http://10.0.0.7:9999/", "/run", "http://10.0.0.7:9999/run"),
        ("http://10.0.0.7:9999", "run", "http://10.0.0.7:9999/run"),
        ("http://10.0.0.7:9999", "/run", "http://10.0.0.7:9999/run"),
        ("http://10.0.0.7:9999//", "run", "http://10.0.0.7:9999/run"),
        ("http://gate.example/jobs/seven", "/run", "http://gate.example/jobs/seven/run"),
        ("http://gate.example/jobs/seven/", "api/callback", "http://gate.example/jobs/seven/api/callback"),
    ],
)
def test_joins_an_address_and_a_path_with_exactly_one_slash(root: str, path: str, url: str) -> None:
    assert join_url(root, path) == url
