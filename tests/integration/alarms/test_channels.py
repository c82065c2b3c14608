"""Each kind of channel against a real server."""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import logging
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from jobwheel.admin.alarms.addresses import Resolver
from jobwheel.admin.alarms.channel import Alarm, Channel, ChannelTools
from jobwheel.admin.alarms.errors import ChannelError
from jobwheel.admin.alarms.http import HttpSender
from jobwheel.admin.alarms.kinds import own_kinds
from jobwheel.admin.alarms.mail_server import MailServer
from jobwheel.admin.alarms.settings import SettingRefusedError, read_values
from jobwheel.admin.alarms.text import AlarmTexts
from jobwheel.admin.domain.alarm import AlarmFacts, AlarmKind
from jobwheel.kernel.fake_clock import FakeClock
from jobwheel.schedule import Language
from tests.support.http_peer import HttpPeer, after, never, raw, reply, unused_port
from tests.support.smtp_server import SmtpServer

CLOCK = FakeClock()
NOW_MS = CLOCK.now()
TLS = Path(__file__).parents[2] / "support" / "tls"
FACTS = AlarmFacts(
    AlarmKind.FAILED,
    NOW_MS,
    NOW_MS,
    "UTC",
    group="orders",
    job_id=7,
    job="settle <accounts> & 账户",
    words='said "no"\nand <b>ended</b>',
    emails=("owner@example.com",),
)
ALARM = AlarmTexts(Language.EN, "https://jobs.example.com").write(FACTS)


def tools(*, allows_private: bool = True, timeout_s: float = 5.0, tls: ssl.SSLContext | None = None) -> ChannelTools:
    resolver = Resolver()
    http = HttpSender(resolver, timeout_s=timeout_s, allows_private=allows_private, tls=tls)
    return ChannelTools(CLOCK, http, MailServer(resolver, timeout_s=timeout_s, tls=tls))


def channel(kind: str, given: ChannelTools | None = None, **settings: Any) -> Channel:
    found = own_kinds()[kind]
    return found.make(read_values(found.settings, settings, {}), given or tools())


@pytest.fixture
async def peer() -> AsyncIterator[HttpPeer]:
    async with HttpPeer() as opened:
        yield opened


def address(peer: HttpPeer, path: str = "/hook?key=7") -> str:
    assert peer._server is not None
    return f"http://127.0.0.1:{peer._server.sockets[0].getsockname()[1]}{path}"


def body(peer: HttpPeer) -> Any:
    return json.loads(peer.requests[-1].body)


class TestWebhook:
    async def test_without_a_template_all_fields_are_sent(
        self, peer: HttpPeer, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        peer.script = [reply(b"thank\r\nyou")]
        said = await channel("webhook", url=address(peer), headers={"X-Team": "a"}).send(ALARM)
        assert said == "HTTP 200 thank you"
        (request,) = peer.requests
        assert request.request_line == "POST /hook?key=7 HTTP/1.1"
        assert request.headers["x-team"] == "a"
        assert request.headers["content-type"].startswith("application/json")
        assert body(peer) == dict(ALARM.fields)
        # Whatever a library logs: an address may hold a secret.
        assert "key=7" not in caplog.text

    async def test_a_template_makes_the_body(self, peer: HttpPeer) -> None:
        template = '{"words": "{{ job }} of {{ group }}: {{ message }}"}'
        await channel("webhook", url=address(peer), method="PUT", body=template).send(ALARM)
        assert peer.requests[0].request_line.startswith("PUT ")
        assert body(peer) == {"words": f"{FACTS.job} of orders: {FACTS.words}"}

    async def test_an_unknown_field_is_refused_when_it_is_saved(self) -> None:
        with pytest.raises(SettingRefusedError, match="no field 'passwort'"):
            channel("webhook", url="https://example.com/", body="{{ passwort }}")

    @pytest.mark.parametrize("status", [300, 404, 500])
    async def test_anything_but_a_yes_is_a_no(self, peer: HttpPeer, status: int) -> None:
        peer.script = [reply(b"why", status=status)]
        with pytest.raises(ChannelError, match=f"HTTP {status} why"):
            await channel("webhook", url=address(peer)).send(ALARM)

    async def test_redirects_are_not_followed(self, peer: HttpPeer) -> None:
        peer.script = [reply(status=302, headers=f"Location: {address(peer, '/inside')}\r\n")]
        with pytest.raises(ChannelError, match="HTTP 302"):
            await channel("webhook", url=address(peer)).send(ALARM)
        assert len(peer.requests) == 1

    async def test_one_that_never_answers_is_given_up(self, peer: HttpPeer) -> None:
        peer.otherwise = never
        with pytest.raises(ChannelError, match=r"no reply within 0\.2 s"):
            await channel("webhook", tools(timeout_s=0.2), url=address(peer)).send(ALARM)

    async def test_one_that_answers_for_ever_is_not_read_to_its_end(self, peer: HttpPeer) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n"
        stop = asyncio.Event()
        peer.script = [raw(head, b"x" * 200_000), after(stop, reply())]
        said = await channel("webhook", url=address(peer)).send(ALARM)
        assert said.startswith("HTTP 200 xxx")
        assert len(said) < 400

    async def test_nobody_there_is_told_without_the_secret_in_the_address(self) -> None:
        url = f"http://127.0.0.1:{unused_port()}/secret-7351?token=secret-7351"
        with pytest.raises(ChannelError, match="no reply") as caught:
            await channel("webhook", url=url).send(ALARM)
        assert "7351" not in str(caught.value)


async def test_https_is_checked_by_the_name_that_was_given() -> None:
    async with HttpPeer(tls=server_tls()) as peer:
        url = address(peer).replace("http:", "https:")
        assert (await channel("webhook", tools(tls=client_tls()), url=url).send(ALARM)).startswith("HTTP 200")
        with pytest.raises(ChannelError, match=r"(?i)certificate"):
            await channel("webhook", url=url).send(ALARM)


class TestPrivateAddresses:
    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0x7f000001", "2130706433", "127.1"])
    async def test_this_machine_is_not_asked(self, peer: HttpPeer, host: str) -> None:
        url = address(peer).replace("127.0.0.1", host)
        with pytest.raises(ChannelError, match=r"no public address; JOBWHEEL_ALARMS_TO_PRIVATE_ADDRESSES|no reply"):
            await channel("webhook", tools(allows_private=False), url=url).send(ALARM)
        assert peer.requests == []

    async def test_a_name_is_sent_as_it_was_given(self, peer: HttpPeer) -> None:
        url = address(peer).replace("127.0.0.1", "localhost")
        with contextlib.suppress(ChannelError):
            # Where the name leads to the IPv6 loopback first, nobody is there.
            await channel("webhook", url=url).send(ALARM)
            assert peer.requests[0].headers["host"] == urlsplit(url).netloc


class TestRobots:
    async def test_dingtalk_is_signed(self, peer: HttpPeer) -> None:
        peer.script = [reply(b'{"errcode": 0, "errmsg": "ok"}')]
        said = await channel("dingtalk", url=address(peer, "/robot/send?access_token=t"), secret="SEC1").send(ALARM)
        assert '"errmsg": "ok"' in said
        query = parse_qs(urlsplit(peer.requests[0].request_line.split()[1]).query)
        digest = hmac.new(b"SEC1", f"{NOW_MS}\nSEC1".encode(), hashlib.sha256).digest()
        assert query == {
            "access_token": ["t"],
            "timestamp": [str(NOW_MS)],
            "sign": [base64.b64encode(digest).decode()],
        }
        assert body(peer)["text"]["content"] == f"{ALARM.text}\n{ALARM.link}"

    @pytest.mark.parametrize("kind", ["feishu", "lark"])
    async def test_feishu_is_signed(self, peer: HttpPeer, kind: str) -> None:
        peer.script = [reply(b'{"code": 0, "msg": "success"}')]
        await channel(kind, url=address(peer), secret="SEC2").send(ALARM)
        digest = hmac.new(f"{NOW_MS // 1000}\nSEC2".encode(), b"", hashlib.sha256).digest()
        assert body(peer) == {
            "timestamp": str(NOW_MS // 1000),
            "sign": base64.b64encode(digest).decode(),
            "msg_type": "text",
            "content": {"text": f"{ALARM.text}\n{ALARM.link}"},
        }

    async def test_wecom_gets_what_it_has_room_for(self, peer: HttpPeer) -> None:
        peer.script = [reply(b'{"errcode": 0}')]
        long = Alarm("字" * 1000, [], "https://jobs.example.com/runs/1", is_good=False, emails=(), fields={})
        await channel("wecom", url=address(peer)).send(long)
        content = body(peer)["text"]["content"]
        assert len(content.encode()) <= 2048
        assert content.endswith("…\nhttps://jobs.example.com/runs/1")

    async def test_slack_reads_no_mention_out_of_a_name(self, peer: HttpPeer) -> None:
        peer.script = [reply(b"ok")]
        assert await channel("slack", url=address(peer)).send(ALARM) == "HTTP 200 ok"
        assert "settle &lt;accounts&gt; &amp; 账户" in body(peer)["text"]
        assert "<" not in body(peer)["text"]

    @pytest.mark.parametrize("kind", ["dingtalk", "wecom", "feishu"])
    @pytest.mark.parametrize("said", [b'{"errcode": 310000, "code": 19021}', b"[]", b"<html>", b"{}"])
    async def test_a_robots_no_is_a_no_though_its_status_is_200(self, peer: HttpPeer, kind: str, said: bytes) -> None:
        peer.script = [reply(said)]
        with pytest.raises(ChannelError, match="HTTP 200"):
            await channel(kind, url=address(peer)).send(ALARM)


def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    return context


def client_tls() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(TLS / "certificate.pem"))


def mail(server: SmtpServer, given: ChannelTools | None = None, **settings: Any) -> Channel:
    wanted = {"host": "127.0.0.1", "port": server.port, "security": "none", "from": "jobs@example.com", **settings}
    return channel("mail", given, **wanted)


class TestMail:
    async def test_it_goes_to_the_channels_and_to_the_jobs_people(self) -> None:
        async with SmtpServer() as server:
            said = await mail(server, to=["ops@example.com", "owner@example.com"]).send(ALARM)
            assert "taken as 4711" in said
            ((recipients, sent),) = server.mails
        assert recipients == ["ops@example.com", "owner@example.com"]
        assert (sent["from"], sent["to"]) == ("jobs@example.com", "ops@example.com, owner@example.com")
        assert sent["subject"] == ALARM.title
        assert sent["auto-submitted"] == "auto-generated"
        plain, html = (part.get_content().replace("\r\n", "\n") for part in sent.iter_parts())
        assert plain.strip() == f"{ALARM.text}\n\n{ALARM.link}"
        assert "settle &lt;accounts&gt; &amp; 账户" in html
        assert "&lt;b&gt;ended" in html
        assert f'href="{ALARM.link}"' in html

    @pytest.mark.parametrize("security", ["starttls", "tls"])
    async def test_it_signs_in_over_tls(self, security: str) -> None:
        async with SmtpServer(server_tls(), implicit_tls=security == "tls", password="word-1") as server:
            login = {"security": security, "username": "jobwheel", "to": ["ops@example.com"]}
            trusting = tools(tls=client_tls())
            await mail(server, trusting, password="word-1", **login).send(ALARM)
            assert len(server.mails) == 1
            with pytest.raises(ChannelError, match="535") as caught:
                await mail(server, trusting, password="word-2", **login).send(ALARM)
            assert "word-2" not in str(caught.value)
            with pytest.raises(ChannelError, match=r"(?i)certificate"):
                await mail(server, tools(), password="word-1", **login).send(ALARM)

    async def test_without_starttls_there_is_no_mail_in_clear(self) -> None:
        async with SmtpServer() as server:
            with pytest.raises(ChannelError, match=r"(?i)starttls"):
                await mail(server, security="starttls", to=["ops@example.com"]).send(ALARM)
            assert server.mails == []

    async def test_a_refused_recipient_is_told(self) -> None:
        async with SmtpServer(refused=frozenset({"owner@example.com"})) as server:
            with pytest.raises(ChannelError, match=r"refused owner@example.com \(nobody of that name\)"):
                await mail(server, to=["ops@example.com"]).send(ALARM)

    async def test_a_black_hole_is_given_up(self, peer: HttpPeer) -> None:
        """A server that takes the connection and never says a word."""
        peer.otherwise = never
        assert peer._server is not None
        port = peer._server.sockets[0].getsockname()[1]
        settings = {"host": "127.0.0.1", "port": port, "security": "none", "from": "jobs@example.com"}
        with pytest.raises(ChannelError, match=r"longer than 0\.2 s"):
            await channel("mail", tools(timeout_s=0.2), to=["ops@example.com"], **settings).send(ALARM)

    async def test_nobody_there(self) -> None:
        settings: dict[str, Any] = {"host": "127.0.0.1", "port": unused_port(), "from": "jobs@example.com"}
        with pytest.raises(ChannelError, match=r"127\.0\.0\.1"):
            await channel("mail", to=["ops@example.com"], **settings).send(ALARM)

    @pytest.mark.parametrize(
        ("settings", "name"),
        [
            ({"username": "u"}, "password"),
            ({"password": "p"}, "username"),
            ({"username": "u", "password": "p", "security": "none"}, "security"),
            ({"host": "a b"}, "host"),
        ],
    )
    def test_settings_that_do_not_go_together(self, settings: dict[str, Any], name: str) -> None:
        wanted = {"host": "mail.example.com", "from": "jobs@example.com", **settings}
        with pytest.raises(SettingRefusedError) as caught:
            channel("mail", **wanted)
        assert caught.value.name == name
