"""Executors and admins that speak https."""

import json
import ssl
import urllib.request
from pathlib import Path

import pytest

from jobwheel.executor import SettingError
from tests.integration.executor.conftest import MakeExecutor
from tests.support.recording_admin import RecordingAdmin, wait_until

TLS = Path(__file__).parents[2] / "support" / "tls"


def test_an_executor_with_a_certificate_is_registered_and_served_with_https(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    executor = make_executor(tls_certificate=TLS / "certificate.pem", tls_key=str(TLS / "key.pem"))
    executor.start_in_background()
    admin.wait_for_registration()
    address = admin.of("registry")[0].body["registryValue"]
    assert address == f"https://127.0.0.1:{executor.port}/"
    trusted = ssl.create_default_context(cafile=str(TLS / "certificate.pem"))
    with urllib.request.urlopen(f"{address}beat", data=b"", context=trusted, timeout=8) as reply:
        assert json.loads(reply.read())["code"] == 200


def test_an_admin_on_https_is_believed_when_the_ca_file_vouches_for_it(
    make_executor: MakeExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    with RecordingAdmin(tls=TLS) as admin:
        doubting = make_executor(admin=admin.url)
        doubting.start_in_background()
        wait_until(lambda: "executor.not_registered" in caplog.text)
        assert "certificate" in caplog.text
        assert admin.requests == []
        believing = make_executor(admin=admin.url, ca_file=TLS / "certificate.pem")
        believing.start_in_background()
        admin.wait_for_registration()
        believing.stop_in_background()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"tls_certificate": TLS / "certificate.pem"}, "tls_key"),
        ({"tls_key": TLS / "key.pem"}, "tls_certificate"),
        ({"tls_certificate": TLS / "none.pem", "tls_key": TLS / "key.pem"}, "tls_certificate"),
        ({"tls_certificate": __file__, "tls_key": TLS / "key.pem"}, "tls_certificate"),
        ({"ca_file": __file__}, "ca_file"),
        ({"ca_file": TLS}, "ca_file"),
    ],
)
def test_bad_files_are_named(make_executor: MakeExecutor, arguments: dict[str, object], named: str) -> None:
    with pytest.raises(SettingError, match=f"setting {named} is"):
        make_executor(**arguments).start_in_background()
