"""Results reach an admin, whatever happens on the way."""

from pathlib import Path

from jobwheel import Executor
from jobwheel.wire.codec import encode_envelope
from tests.integration.executor.conftest import MakeExecutor
from tests.support.executor_peer import ExecutorPeer
from tests.support.recording_admin import Recorded, RecordingAdmin, success, wait_until


def started(executor: Executor) -> ExecutorPeer:
    executor.start_in_background()
    return ExecutorPeer(executor.port)


def spooled_files(executor: Executor) -> list[Path]:
    return list(executor.settings.log_path.glob("spool/*/*.spool"))


def test_results_of_an_admins_absence_arrive_when_it_is_back(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    executor = make_executor(heartbeat_s=0.05)
    executor.register("x", lambda: "done")
    peer = started(executor)
    admin.wait_for_registration()
    admin.stop()
    log_ids = {peer.run("x", jobId=number % 5) for number in range(50)}
    wait_until(lambda: all(peer.post("/idleBeat", {"jobId": number})["code"] == 200 for number in range(5)))
    assert admin.results == []
    admin.start()
    admin.wait_for_results(log_ids)
    assert {result["handleMsg"] for result in admin.results} == {"done"}


def test_the_next_admin_takes_what_the_first_does_not(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    with RecordingAdmin(reply=lambda recorded: encode_envelope(500, "database is down")) as first:
        executor = make_executor(admin=["http://127.0.0.1:9", first.url, admin.url], dialect="B")
        executor.register("x", lambda: "done")
        log_id = started(executor).run("x")
        assert admin.result_of(log_id)["handleCode"] == 200
        assert len(first.of("callback")) == 1


def test_a_result_is_kept_until_an_admin_answers_success(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    executor = make_executor(dialect="B")
    answers = [encode_envelope(500, "database is down"), b"<html>", b"", encode_envelope(502, "x")]

    def reply(recorded: Recorded) -> bytes:
        if recorded.path == "callback" and answers:
            assert spooled_files(executor)[0].read_bytes().count(b'"log_id"') == 1
            return answers.pop(0)
        return success(recorded)

    admin.reply = reply
    executor.register("x", lambda: "done")
    log_id = started(executor).run("x")
    admin.wait_for(lambda: len(admin.results) == 5)
    assert [result["logId"] for result in admin.results] == [log_id] * 5
    wait_until(lambda: spooled_files(executor)[0].read_bytes().count(b'"log_id"') == 0)
    executor.stop_in_background()
    assert spooled_files(executor) == []
    assert len(admin.results) == 5


def test_what_could_not_be_sent_is_sent_by_the_next_start(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    executor = make_executor()
    executor.register("x", lambda: "done")
    peer = started(executor)
    admin.wait_for_registration()
    admin.stop()
    log_ids = {peer.run("x") for _ in range(20)}
    executor.stop_in_background()
    assert len(spooled_files(executor)) == 1

    admin.start()
    executor.start_in_background()
    admin.wait_for_results(log_ids)
    beat = admin.of("registry")[-1].body["features"]
    assert beat["spooled"] in range(21)
    executor.stop_in_background()
    assert spooled_files(executor) == []
    assert len(admin.results) == 20


def test_the_first_beat_counts_what_an_earlier_process_left(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    executor = make_executor()
    executor.register("x", lambda: "done")
    peer = started(executor)
    admin.wait_for_registration()
    admin.stop()
    for _ in range(3):
        peer.run("x")
    executor.stop_in_background()
    before = len(admin.of("registry"))

    admin.reply = lambda recorded: encode_envelope(500, "not now") if recorded.path == "callback" else success(recorded)
    admin.start()
    executor.start_in_background()
    admin.wait_for(lambda: len(admin.of("registry")) > before)
    assert admin.of("registry")[before].body["features"]["spooled"] == 3


def test_text_of_any_kind_arrives(executor: Executor, admin: RecordingAdmin) -> None:
    texts = ['back\\slash "quote"', "form\x0cfeed\x00\x1b[31m", "中文 \U0001f600 \u2028", "\n\r\t", "{'cut': [1, 2"]
    for number, text in enumerate(texts):
        executor.register(f"x{number}", lambda text=text: text)
    peer = started(executor)
    log_ids = [peer.run(f"x{number}") for number in range(len(texts))]
    assert [admin.result_of(log_id)["handleMsg"] for log_id in log_ids] == texts


def test_two_executors_of_one_folder_do_not_take_each_others_results(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    first, second = make_executor(), make_executor()
    for executor in (first, second):
        executor.register("x", lambda: "done")
    peers = [started(first), started(second)]
    peers[1]._ids = iter(range(5001, 6000))  # type: ignore[assignment]
    log_ids = {peer.run("x", jobId=number % 3) for peer in peers for number in range(30)}
    admin.wait_for_results(log_ids)
    assert len(admin.results) == 60
