"""Executors that answer garbage, too much, or nothing: the run says so, and everyone else is on time."""

import asyncio
import contextlib
import gzip
import json
from collections.abc import AsyncIterator, Mapping

import msgspec
import pytest

from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import Outcome, Phase, Run
from tests.support.bad_peers import endless, group, on_time, register, trickle
from tests.support.due_runs import all_done, write_due
from tests.support.http_peer import Behaviour, HttpPeer, chunked, never, raw, reply, reset
from tests.support.live_admin import LiveAdmin, seen
from tests.support.recording_executor import INSTANCE, Asked, RecordingExecutor, accept

pytestmark = [pytest.mark.timeout(40), pytest.mark.parametrize("send_timeout_s", [0.5])]

OK = b"HTTP/1.1 200 OK\r\n"
BATCH = msgspec.json.encode({"instance": INSTANCE, "batch": True}).decode()


def envelope(value: object) -> Behaviour:
    return reply(json.dumps(value).encode())


ANSWERS: Mapping[str, tuple[Behaviour, str]] = {
    "a page": (reply(b"<html>\n<h1>It works!</h1></html>"), "not JSON"),
    "a page of an error": (reply(b"<h1>Internal Server Error</h1>", 500), "(HTTP 500)"),
    "a page of an error, shown": (reply(b"<h1>Whitelabel Error Page</h1>", 500), "Whitelabel Error Page"),
    "a proxy": (reply(b"Bad Gateway", 502), "a proxy answered HTTP 502"),
    "a redirect": (reply(b"", 302, "Location: /login\r\n"), "HTTP 302: it points elsewhere"),
    "a redirect with a page": (reply(b"<h1>Moved</h1>", 301, "Location: /x\r\n"), "HTTP 301: it points elsewhere"),
    "gzip": (reply(gzip.compress(b'{"code":200}'), headers="Content-Encoding: gzip\r\n"), "not JSON"),
    "nothing in it": (reply(b""), "an empty answer (HTTP 200)"),
    "code is text": (envelope({"code": "200"}), "code: expected int, got str"),
    "code is null": (envelope({"code": None}), "code: is missing"),
    "no code": (envelope({"status": "ok"}), "code: is missing"),
    "a list": (envelope([{"code": 200}]), "expected object, got array"),
    "a text": (envelope("ok"), "expected object, got str"),
    "half of it": (reply(b'{"code":20'), "not JSON"),
    "ten megabytes": (reply(b'"\n"' * 3_300_000), "larger than"),
    "a hundred megabytes": (endless(OK + b"Content-Length: 100000000\r\n\r\n", b"x" * 65_536), "larger than"),
    "no end": (endless(OK + b"\r\n", b"x" * 65_536), "larger than"),
    "chunks without end": (endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 9_000), "larger than"),
    "headers without end": (endless(OK, b"X-More: yes\r\n" * 1000), "or its head than"),
    "chunks that are none": (raw(OK + b"Transfer-Encoding: chunked\r\n\r\nmany\r\n"), "no HTTP"),
    "garbage in chunks": (chunked(b"\x00\xff", b"\xfe" * 99), "not JSON"),
    "no HTTP": (raw(b"220 mail.example ESMTP\r\n"), "no HTTP"),
    "a close without a word": (raw(close=True), "closed before the reply was complete"),
    "a close in the middle": (raw(OK + b'Content-Length: 12\r\n\r\n{"cod', close=True), "closed before"),
    "a reset": (reset, "the connection was lost"),
    "a byte now and then": (trickle, "no reply in time"),
    "silence": (never, "no reply in time"),
}
BATCH_ANSWERS: Mapping[str, tuple[Behaviour, str]] = {
    **ANSWERS,
    "too few": (envelope({"code": 200, "data": [{"code": 200}] * 2}), "data: expected 3 envelopes, got 2"),
    "too many": (envelope({"code": 200, "data": [{"code": 200}] * 4}), "data: expected 3 envelopes, got 4"),
    "twice each": (envelope({"code": 200, "data": [{"code": 200, "logId": 1}] * 6}), "expected 3 envelopes, got 6"),
    "none": (envelope({"code": 200, "data": []}), "expected 3 envelopes, got 0"),
    "no data": (envelope({"code": 200}), "data: is missing"),
    "data is an object": (envelope({"code": 200, "data": {"1": {"code": 200}}}), "expected array, got object"),
    "items are no envelopes": (envelope({"code": 200, "data": [None, "ok", 200]}), "expected object"),
    "items with bad codes": (envelope({"code": 200, "data": [{"code": "200"}, {}, {"code": 2**40}]}), "code:"),
}


@contextlib.asynccontextmanager
async def peers(
    live: LiveAdmin, answers: Mapping[str, tuple[Behaviour, str]], **features: object
) -> AsyncIterator[dict[str, tuple[HttpPeer, Job]]]:
    """For each answer a group with one executor that always gives it, and a job."""
    async with contextlib.AsyncExitStack() as stack:
        made = {}
        for number, (name, (behaviour, _)) in enumerate(answers.items()):
            peer = await stack.enter_async_context(HttpPeer(otherwise=behaviour))
            app_name = f"peer-{number}"
            await group(live, app_name)
            await register(live, app_name, peer.root, **features)
            made[name] = (peer, await live.job(app_name=app_name))
        yield made


async def unconfirmed(live: LiveAdmin, job: Job, count: int) -> list[Run]:
    async def look() -> list[Run] | None:
        runs = await live.runs(job)
        return runs if [run.phase for run in runs] == [Phase.UNCONFIRMED] * count else None

    return await seen(look, 20)


@pytest.mark.parametrize("in_batch", [1, 3], ids=["one run", "a batch"])
async def test_a_run_says_what_is_wrong_with_the_answer(live: LiveAdmin, in_batch: int) -> None:
    features = {"instance_id": INSTANCE, "features": BATCH} if in_batch > 1 else {}
    answers, path = (BATCH_ANSWERS, "/runBatch") if in_batch > 1 else (ANSWERS, "/run")
    async with on_time(live) as healthy, peers(live, answers, **features) as made:
        for _, job in made.values():
            await write_due(live, job, in_batch)
        for name, (peer, job) in made.items():
            runs = await unconfirmed(live, job, in_batch)
            for run in runs:
                told = f"{peer.root} gave no usable answer: the run may or may not have arrived (code 500): "
                assert told in (run.trigger_message or ""), name
                assert answers[name][1] in (run.trigger_message or ""), name
            # Nothing is sent twice, whatever came back, and the result settles what the answer left open.
            assert [asked.request_line for asked in peer.requests] == [f"POST {path} HTTP/1.1"], name
            for run in runs:
                await healthy.report(run.id)
            assert {run.outcome for run in await all_done(live, job)} == {Outcome.SUCCEEDED}, name


async def test_large_parameters_go_in_several_requests(live: LiveAdmin) -> None:
    arrived = {}

    async def note(executor: RecordingExecutor, asked: Asked) -> dict[str, object] | bytes | None:
        arrived[asked.log_id] = asked.body["executorParams"]
        return await accept(executor, asked)

    # Nothing hangs here that others could wait for, but both ends of megabytes are in this one process.
    async with on_time(live, 5000), live.executor(note, instance=INSTANCE, batch=True) as executor:
        await executor.register()
        parameter = '\u00e9\u20ac\\"\n' * 40_000
        job = await live.job()
        run_ids = await write_due(live, job, 30, parameter)
        assert {run.outcome for run in await all_done(live, job, 25)} == {Outcome.SUCCEEDED}
        assert sorted(arrived) == run_ids
        assert set(arrived.values()) == {parameter}
        assert len(executor.runs()) == 30
        assert max(map(len, executor.batches)) <= 5


async def test_an_instance_that_is_none_is_no_instance(live: LiveAdmin) -> None:
    async def say(executor: RecordingExecutor, asked: Asked) -> dict[str, object]:
        executor.start(asked)
        return {"code": 200, "instance": "x" * 300 + "\x00"}

    async with live.executor(say, reports=False) as executor:
        await executor.register()
        run_id = await live.trigger(await live.job())
        await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)
        query = "SELECT instance_id FROM xxl_job_log WHERE id = ?"
        stored = await live.admin.database.read(lambda c: c.exec_driver_sql(query, (run_id,)).scalar_one())
        assert stored is None
        answer = await executor.post(
            "registry", {**executor.registration(), "features": {"instance": "x" * 300, "batch": True}}
        )
    assert (answer["code"], "features.instance" in answer["msg"]) == (500, True)


async def test_a_handler_that_is_missing_is_what_the_executor_says_it_is(live: LiveAdmin) -> None:
    async def refuse(executor: RecordingExecutor, asked: Asked) -> dict[str, object]:
        return executor.envelope(500, msg=f"job handler {asked.body['executorHandler']!r} is not registered here")

    async with on_time(live), live.executor(refuse) as executor:
        await executor.register()
        for handler in ("", None):
            job = await live.job()
            await live.change_job(job.id, executor_handler=handler)
            run = await live.done(await live.trigger(job))
            assert (run.outcome, run.trigger_code, run.handle_code) == (Outcome.FAILED, 500, 0)
            assert "rejected (code 500): job handler '' is not registered here" in (run.trigger_message or "")
    assert len(executor.runs()) == 2


async def test_a_reply_that_never_ends_is_read_no_further_than_it_may_be_long(live: LiveAdmin) -> None:
    written = 0
    broken_off = asyncio.Event()

    async def count(writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(OK + b"\r\n")
        try:
            while True:
                writer.write(b"x" * 65_536)
                await writer.drain()
                written += 65_536
        finally:
            broken_off.set()

    async with HttpPeer(otherwise=count) as peer:
        await group(live, "orders")
        await register(live, "orders", peer.root)
        job = await live.job()
        await live.trigger(job)
        await unconfirmed(live, job, 1)
        await asyncio.wait_for(broken_off.wait(), 8)
    # The kernel's buffers take some megabytes.
    assert written < 50_000_000
