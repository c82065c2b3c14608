"""`/runBatch` from one end to the other: the admin's client, and each executor that takes batches."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from jobwheel import Executor, JobContext
from jobwheel.admin.engine.executor_answers import AnswerKind
from jobwheel.admin.engine.executor_client import ExecutorClient
from jobwheel.kernel.clock import SystemClock
from jobwheel.kernel.secret import Secret
from jobwheel.wire.client import WireClient
from jobwheel.wire.messages import TriggerRequest
from tests.support.eventually import eventually
from tests.support.http_peer import unused_port
from tests.support.recording_executor import INSTANCE, RecordingExecutor, cut, hang

TOKEN = "wheel-Qx7-made-up"
ACCEPTED, UNCONFIRMED = AnswerKind.ACCEPTED, AnswerKind.UNCONFIRMED


class Side:
    """An executor that takes batches: where it is, and what it has begun, in order."""

    def __init__(self, address: str, instance: str, begun: Callable[[], list[int]]) -> None:
        self.address = address
        self.instance = instance
        self.begun = begun


Open = Callable[[AsyncExitStack, Path], Awaitable[Side]]


async def sdk(stack: AsyncExitStack, folder: Path) -> Side:
    begun: list[int] = []
    executor = Executor(access_token=TOKEN, port=unused_port(), log_path=folder)

    @executor.job("x")
    def handler(context: JobContext) -> None:
        begun.append(context.log_id)

    await executor.start()
    stack.push_async_callback(executor.stop)
    return Side(f"http://127.0.0.1:{executor.port}/", executor.instance, lambda: begun)


async def recording(stack: AsyncExitStack, _: Path) -> Side:
    executor = await stack.enter_async_context(
        RecordingExecutor("http://127.0.0.1:9", TOKEN, instance=INSTANCE, batch=True, reports=False)
    )
    return Side(executor.address, INSTANCE, lambda: list(executor.started))


@pytest.fixture(params=[sdk, recording], ids=lambda opener: opener.__name__)
async def side(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Side]:
    opener: Open = request.param
    async with AsyncExitStack() as stack:
        yield await opener(stack, tmp_path)


@pytest.fixture
async def wire() -> AsyncIterator[WireClient]:
    client = WireClient(SystemClock())
    await client.start()
    yield client
    await client.stop()


def runs(*log_ids: int) -> list[TriggerRequest]:
    return [
        TriggerRequest(job_id=7, log_id=log_id, log_date_time=1000, executor_handler="x", glue_type="BEAN")
        for log_id in log_ids
    ]


def client_of(wire: WireClient, timeout_s: float = 5.0) -> ExecutorClient:
    return ExecutorClient(wire, Secret(TOKEN), timeout_s)


async def test_a_batch_is_begun_in_its_order_and_repeats_are_not(wire: WireClient, side: Side) -> None:
    client = client_of(wire)
    answers = await client.run_batch(side.address, "orders", runs(3, 1, 3, 2))
    assert [(answer.kind, answer.code, answer.instance_id) for answer in answers] == [
        (ACCEPTED, code, side.instance) for code in (200, 200, 500, 200)
    ]
    assert [answer.reason for answer in answers] == [None, None, "repeated", None]
    await client.run_batch(side.address, "orders", runs(2, 4))
    await eventually(lambda: side.begun() == [3, 1, 2, 4])


async def test_the_longest_batch_there_is(wire: WireClient, side: Side) -> None:
    answers = await client_of(wire).run_batch(side.address, "orders", runs(*range(1, 1001)))
    assert {answer.kind for answer in answers} == {ACCEPTED}
    await eventually(lambda: side.begun() == list(range(1, 1001)))


async def test_a_single_run_is_known_to_a_batch_and_the_other_way_round(wire: WireClient, side: Side) -> None:
    client, (first, second) = client_of(wire), runs(1, 2)
    await client.run(side.address, "orders", first)
    assert [each.reason for each in await client.run_batch(side.address, "orders", [first, second])] == [
        "repeated",
        None,
    ]
    assert (await client.run(side.address, "orders", second)).reason == "repeated"


@pytest.mark.parametrize(("answer", "begun"), [(hang, [1]), (cut, [])])
async def test_silence_in_the_middle_leaves_all_unconfirmed(
    wire: WireClient, answer: Callable[..., Awaitable[None]], begun: list[int]
) -> None:
    async with RecordingExecutor(
        "http://127.0.0.1:9", TOKEN, answer, instance=INSTANCE, batch=True, reports=False
    ) as executor:
        answers = await client_of(wire, 0.2).run_batch(executor.address, "orders", runs(1, 2))
        assert [each.kind for each in answers] == [UNCONFIRMED] * 2
        assert list(executor.started) == begun
        assert executor.batches == [[1, 2]]


async def test_who_announces_no_batches_gets_single_runs(wire: WireClient) -> None:
    async with RecordingExecutor("http://127.0.0.1:9", TOKEN, instance=INSTANCE, reports=False) as executor:
        answers = await client_of(wire).run_batch(executor.address, "orders", runs(1, 2))
        assert [each.kind for each in answers] == [ACCEPTED] * 2
        assert sorted(executor.started) == [1, 2]
        assert executor.batches == []
