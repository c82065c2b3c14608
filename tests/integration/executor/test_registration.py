"""Being known to the admins."""

import logging
import threading

import pytest

from jobwheel import Executor, JobContext
from jobwheel.wire.codec import encode_envelope
from tests.integration.executor.conftest import MakeExecutor
from tests.support.executor_peer import ExecutorPeer
from tests.support.recording_admin import Recorded, RecordingAdmin, Reply, success, wait_until


def test_a_started_executor_is_registered_and_a_stopped_one_removed(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    executor = make_executor(access_token="wheel-Qx7-made-up")
    executor.start_in_background()
    admin.wait_for_registration()
    recorded = admin.of("registry")[0]
    assert recorded.headers["xxl-job-access-token"] == "wheel-Qx7-made-up"
    assert recorded.body["registryGroup"] == "EXECUTOR"
    assert recorded.body["registryKey"] == "demo"
    assert recorded.body["registryValue"] == f"http://127.0.0.1:{executor.port}/" == executor.address
    features = recorded.body["features"]
    assert features.pop("version")
    assert features == {
        "instance": executor.instance,
        "batch": True,
        "killByLog": True,
        "status": True,
        "draining": False,
        "running": 0,
        "queued": 0,
        "spooled": 0,
        "abandoned": 0,
    }
    executor.stop_in_background()
    (removed,) = admin.of("registryRemove")
    assert removed.body == {key: value for key, value in recorded.body.items() if key != "features"}
    assert admin.requests[-1] is removed


def test_beats_go_on_and_tell_what_is_running_and_queued(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    go = threading.Event()
    executor = make_executor(heartbeat_s=0.02)
    executor.register("x", lambda: go.wait(8))
    executor.start_in_background()
    peer = ExecutorPeer(executor.port)
    peer.run("x")
    peer.run("x")
    admin.wait_for(
        lambda: any(
            (beat.body["features"]["running"], beat.body["features"]["queued"]) == (1, 1)
            for beat in admin.of("registry")
        )
    )
    go.set()


def test_every_admin_is_told_and_one_that_is_gone_delays_no_other(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    with RecordingAdmin(base="/xxl-job-admin") as other:
        executor = make_executor(admin=["http://127.0.0.1:9", admin.url + "/", f" {other.url}//"], heartbeat_s=0.02)
        executor.start_in_background()
        for each in (admin, other):
            each.wait_for(lambda each=each: len(each.of("registry")) >= 3)  # type: ignore[misc]
        executor.stop_in_background()
        assert len(admin.of("registryRemove")) == len(other.of("registryRemove")) == 1


def test_an_admin_that_does_not_answer_the_beat_is_told_of_the_end_all_the_same(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    asked, go = threading.Event(), threading.Event()

    def silent(recorded: Recorded) -> bytes:
        if recorded.path == "registry":
            asked.set()
            assert go.wait(8)
        return success(recorded)

    admin.reply = silent
    executor = make_executor(timeout_s=0.1)
    executor.start_in_background()
    assert asked.wait(8)
    executor.stop_in_background()
    assert len(admin.of("registryRemove")) == 1
    go.set()


def test_the_log_tells_of_changes_only(
    make_executor: MakeExecutor, admin: RecordingAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    executor = make_executor(heartbeat_s=0.02)
    executor.start_in_background()
    admin.wait_for(lambda: len(admin.of("registry")) >= 5)
    assert caplog.text.count("executor.registered") == 1
    admin.stop()
    wait_until(lambda: "executor.registration_lost" in caplog.text)
    admin.start()
    wait_until(lambda: "executor.regained" in caplog.text)
    for event in ("executor.registered", "executor.registration_lost", "executor.regained"):
        assert caplog.text.count(event) == 1


@pytest.mark.parametrize(
    ("path", "reply", "words"),
    [
        ("", "The access token is wrong.", ["/api/registry answered 500", "access token is wrong", "access_token"]),
        (
            "",
            "no group has the app name demo",
            ["/api/registry answered 500", "no group has", "group of this app name"],
        ),
        ("/wrong", None, ["/wrong/api/registry answered 500", "uri-mapping"]),
    ],
)
def test_a_refused_registration_says_what_url_status_and_reason(
    make_executor: MakeExecutor,
    admin: RecordingAdmin,
    caplog: pytest.LogCaptureFixture,
    path: str,
    reply: str | None,
    words: list[str],
) -> None:
    if reply is not None:
        admin.reply = lambda recorded: encode_envelope(500, reply)
    executor = make_executor(admin=admin.url + path, heartbeat_s=0.02)
    executor.start_in_background()
    wait_until(lambda: "executor.not_registered" in caplog.text)
    (text,) = [record.getMessage() for record in caplog.records if "not_registered" in record.getMessage()]
    assert all(word in text for word in words), text


def test_an_address_that_is_no_admins_says_so(
    make_executor: MakeExecutor, caplog: pytest.LogCaptureFixture, admin: RecordingAdmin
) -> None:
    admin.reply = lambda recorded: b"<html>not here</html>"
    make_executor().start_in_background()
    wait_until(lambda: "executor.not_registered" in caplog.text)
    assert "HTTP status 200, not an admin's answer" in caplog.text


def test_an_admin_that_comes_later_is_registered_with(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    failures: list[Recorded] = []

    def later(recorded: Recorded) -> bytes:
        if len(failures) < 3:
            failures.append(recorded)
            return encode_envelope(500, "starting")
        return success(recorded)

    admin.reply = later
    executor = make_executor(heartbeat_s=0.02)
    executor.start_in_background()
    admin.wait_for(lambda: len(admin.of("registry")) >= 5)
    executor.stop_in_background()
    assert len(admin.of("registryRemove")) == 1


@pytest.mark.parametrize("arguments", [{"app_name": ""}, {"admin": ""}])
def test_without_app_name_or_admin_nothing_is_registered_but_runs_are_accepted(
    make_executor: MakeExecutor, admin: RecordingAdmin, caplog: pytest.LogCaptureFixture, arguments: dict[str, str]
) -> None:
    ran = threading.Event()
    executor = make_executor(**arguments)
    executor.register("x", ran.set)
    executor.start_in_background()
    ExecutorPeer(executor.port).run("x")
    assert ran.wait(8)
    executor.stop_in_background()
    assert caplog.text.count("executor.registers_nowhere") == 1
    assert admin.of("registry") == []
    assert admin.of("registryRemove") == []


def test_the_log_tells_what_is_registered_and_why(
    make_executor: MakeExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    executor = make_executor(ip="10.1.2.3")
    executor.start_in_background()
    assert executor.address == f"http://10.1.2.3:{executor.port}/"
    assert f'address=http://10.1.2.3:{executor.port}/ reason="setting ip"' in caplog.text


def test_an_explicit_address_is_registered_byte_for_byte(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    executor = make_executor(address="http://jobs.example:81/executor")
    executor.start_in_background()
    admin.wait_for_registration()
    assert admin.of("registry")[0].body["registryValue"] == "http://jobs.example:81/executor"


def test_a_disabled_executor_does_nothing(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    executor = make_executor(enabled=False)
    executor.start_in_background()
    assert not executor.started
    executor.stop_in_background()
    assert admin.requests == []


def test_handlers_may_be_registered_while_it_works(executor: Executor, admin: RecordingAdmin) -> None:
    executor.start_in_background()
    executor.register("late", lambda: "ok")

    @executor.job("later")
    def later(ctx: JobContext) -> str:
        return "ok"

    peer = ExecutorPeer(executor.port)
    admin.wait_for_results({peer.run("late"), peer.run("later")})


def wishing(**features: bool) -> Reply:
    """Answers registrations as an admin of ours that wants this."""
    return lambda recorded: encode_envelope(200, value={"features": features} if recorded.path == "registry" else None)


def test_an_admin_drains_an_executor_and_lets_it_go_on(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    executor = make_executor(heartbeat_s=0.02)
    executor.register("x", lambda: "done")
    admin.reply = wishing(drain=True)
    executor.start_in_background()
    peer = ExecutorPeer(executor.port)
    admin.wait_for(lambda: bool(admin.of("registry")) and admin.of("registry")[-1].body["features"]["draining"])
    request = peer.trigger("x")
    assert peer.post("/run", request)["reason"] == "stopping"
    admin.reply = wishing(drain=False)
    admin.wait_for(lambda: not admin.of("registry")[-1].body["features"]["draining"])
    assert peer.post("/run", request)["code"] == 200
    assert admin.result_of(request["logId"])["handleMsg"] == "done"


def test_a_drained_executor_hears_within_a_moment_that_it_is_drained_no_more(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    executor = make_executor()
    executor.register("x", lambda: "done")
    admin.reply = wishing(drain=True)
    executor.start_in_background()
    admin.wait_for(lambda: bool(admin.of("registry")) and admin.of("registry")[-1].body["features"]["draining"])
    admin.reply = wishing(drain=False)
    peer = ExecutorPeer(executor.port)
    wait_until(lambda: bool(peer.post("/run", peer.trigger("x"))["code"] == 200))


def test_progress_goes_to_an_admin_that_wants_it_and_to_no_other(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    executor = make_executor(heartbeat_s=0.02)

    @executor.job("x")
    def handler(ctx: JobContext) -> None:
        for percent in range(50):
            ctx.progress(percent / 100, f"{percent} of 100")

    executor.start_in_background()
    peer = ExecutorPeer(executor.port)
    admin.wait_for(lambda: len(admin.of("registry")) > 1)
    admin.result_of(peer.run("x"))
    admin.reply = wishing(progress=True)
    beats = len(admin.of("registry"))
    # The answer to the beat after the next one has been read when that one comes.
    admin.wait_for(lambda: len(admin.of("registry")) > beats + 2)
    log_id = peer.run("x")
    admin.result_of(log_id)
    admin.wait_for(lambda: bool(admin.of("progress")))
    (sent,) = admin.of("progress")[0].body
    assert sent["logId"] == log_id
    assert sent["text"] == f"{round(sent['fraction'] * 100)} of 100"


@pytest.mark.parametrize("value", [None, "text", {"features": {"drain": "yes"}}, {}, [1]])
def test_what_admins_of_another_make_answer_drains_nothing(
    make_executor: MakeExecutor, admin: RecordingAdmin, value: object
) -> None:
    admin.reply = lambda _: encode_envelope(200, value=value)
    executor = make_executor(heartbeat_s=0.02)
    executor.start_in_background()
    admin.wait_for(lambda: len(admin.of("registry")) > 2)
    assert admin.of("registry")[-1].body["features"]["draining"] is False
