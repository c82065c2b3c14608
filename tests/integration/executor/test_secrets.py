"""A token is in no line that anybody reads."""

import logging

import pytest

from jobwheel.wire.codec import encode_envelope
from tests.integration.executor.conftest import MakeExecutor
from tests.support.executor_peer import ExecutorPeer
from tests.support.recording_admin import Recorded, RecordingAdmin, wait_until

TOKENS = ("wheel-Hs8-made-up", "former-Jd3-made-up")


def test_no_log_and_no_file_of_an_executor_shows_a_token(
    make_executor: MakeExecutor,
    admin: RecordingAdmin,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    admin.reply = lambda recorded: encode_envelope(500, "The access token is wrong.")
    executor = make_executor(access_token=",".join(TOKENS), heartbeat_s=0.05)

    @executor.job("x")
    def fails() -> None:
        raise LookupError(executor.settings)

    executor.start_in_background()
    peer = ExecutorPeer(executor.port, TOKENS[1])
    log_id = peer.run("x")
    intruder = ExecutorPeer(executor.port, "guess-Pq1-made-up")
    assert intruder.post("/beat", {})["msg"] == "The access token is wrong."
    wait_until(lambda: "callback.failed" in caplog.text and "executor.wrong_token" in caplog.text)
    assert "LookupError" in peer.log(log_id)["logContent"]
    admin.reply = said_wrongly
    admin.result_of(log_id)
    executor.stop_in_background()

    captured = capfd.readouterr()
    read = [caplog.text, captured.out, captured.err, repr(executor.settings)]
    read += [path.read_text() for path in executor.settings.log_path.rglob("*") if path.is_file()]
    assert "made-up" not in "".join(read)
    assert admin.of("registry")[0].headers["xxl-job-access-token"] == TOKENS[0]


def said_wrongly(recorded: Recorded) -> bytes:
    """A success that finds fault with an item, which becomes a dead letter."""
    return encode_envelope(200, "item 0: no such run" if recorded.path == "callback" else None)
