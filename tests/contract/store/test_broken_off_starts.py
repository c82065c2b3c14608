"""A node whose start is broken off leaves no row that others would wait for and bury."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from jobwheel.admin.engine import node as node_module
from jobwheel.admin.engine.node import Node
from jobwheel.admin.store import nodes
from tests.support.store import Store


class SlowAnswers:
    """A database that does what it is told, and answers only when it is let."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self._write = store.database.write
        self.committed = asyncio.Event()
        self.let_through = asyncio.Event()
        monkeypatch.setattr(store.database, "write", self._slowly)

    async def _slowly(self, work: Callable[..., Any], *args: Any) -> Any:
        answer = await self._write(work, *args)
        self.committed.set()
        await self.let_through.wait()
        return answer


async def test_a_start_broken_off_while_it_joins_leaves_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, node = SlowAnswers(store, monkeypatch), Node(store.database, store.clock)
    starting = asyncio.create_task(node.start())
    await answers.committed.wait()
    starting.cancel()
    await asyncio.wait({starting}, timeout=0)
    answers.let_through.set()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert await store.database.read(nodes.live_nodes) == []
    assert not node.running


@pytest.mark.parametrize("before_the_answer", [True, False])
async def test_a_database_that_does_not_answer_holds_up_no_stop(
    store: Store, monkeypatch: pytest.MonkeyPatch, *, before_the_answer: bool
) -> None:
    monkeypatch.setattr(node_module, "_LEAVES_WITHIN_S", 0.1)
    answers, node = SlowAnswers(store, monkeypatch), Node(store.database, store.clock)
    starting = asyncio.create_task(node.start())
    await answers.committed.wait()
    if before_the_answer:
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(starting, 5)
    else:
        answers.let_through.set()
        await starting
        answers.let_through.clear()
        await asyncio.wait_for(node.stop(), 5)
    assert not node.running
