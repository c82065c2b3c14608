"""FAILOVER and BUSYOVER, against executors on loopback."""

import json
from dataclasses import dataclass

import pytest

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.executor_answers import Answer, AnswerKind
from jobwheel.admin.engine.executor_client import ExecutorClient
from jobwheel.admin.engine.routing import Chosen, Routers
from jobwheel.wire.client import WireClient
from jobwheel.wire.messages import JobQuery
from tests.support.engine_parts import candidates_of
from tests.support.http_peer import Behaviour, HttpPeer, never, reply, reset, unused_port

JOB = JobId(7)
YES = reply(b'{"code":200}')
NO = reply(b'{"code":500,"msg":"job 7 is running or queued here"}')
STOPPING = reply(b'{"code":500,"reason":"stopping"}')
STRATEGIES = pytest.mark.parametrize(("strategy", "path"), [("FAILOVER", "/beat"), ("BUSYOVER", "/idleBeat")])


@dataclass
class Asking:
    """Asks as the engine does; late after so many questions."""

    client: ExecutorClient
    most: int = 100
    asked: int = 0

    @property
    def is_late(self) -> bool:
        return self.asked >= self.most

    async def beat(self, candidate: Candidate) -> Answer:
        self.asked += 1
        return await self.client.beat(candidate.address, "orders")

    async def idle_beat(self, job_id: JobId, candidate: Candidate) -> Answer:
        self.asked += 1
        return await self.client.idle_beat(candidate.address, "orders", JobQuery(job_id))


async def choose(wire: WireClient, strategy: str, peer: HttpPeer, *script: Behaviour, most: int = 100) -> Chosen:
    """Let the strategy choose among as many names of the peer as there are behaviours, which it shows in turn."""
    peer.script[:] = script
    candidates = candidates_of(*(f"{peer.root.rstrip('/')}/{n}/" for n in range(len(script))))
    return await Routers().choose(strategy, JOB, candidates, Asking(ExecutorClient(wire, None, 0.2), most))


def numbers(chosen: Chosen) -> list[int]:
    return [int(each.address.rstrip("/").rpartition("/")[2]) for each in chosen.candidates]


@STRATEGIES
async def test_the_first_that_says_yes_and_those_not_asked(
    wire: WireClient, peer: HttpPeer, strategy: str, path: str
) -> None:
    chosen = await choose(wire, strategy, peer, NO, STOPPING, YES, YES, YES)
    assert numbers(chosen) == [2, 3, 4]
    assert [answer.kind for _, answer in chosen.asked] == [
        AnswerKind.REJECTED,
        AnswerKind.STOPPING,
        AnswerKind.ACCEPTED,
    ]
    assert [request.request_line for request in peer.requests] == [f"POST /{n}{path} HTTP/1.1" for n in range(3)]


@STRATEGIES
async def test_those_out_of_reach_or_silent_are_passed_over(
    wire: WireClient, peer: HttpPeer, strategy: str, path: str
) -> None:
    chosen = await choose(wire, strategy, peer, never, reset, reply(b"<html>"), YES)
    assert numbers(chosen) == [3]
    assert [answer.kind for _, answer in chosen.asked[:3]] == [AnswerKind.UNCONFIRMED] * 3
    dead = candidates_of(f"http://127.0.0.1:{unused_port()}/")
    nobody = await Routers().choose(strategy, JOB, dead, Asking(ExecutorClient(wire, None, 0.2)))
    assert [(address, answer.kind) for address, answer in nobody.asked] == [(dead[0].address, AnswerKind.UNREACHABLE)]


@STRATEGIES
async def test_with_no_yes_there_is_no_candidate_and_every_answer(
    wire: WireClient, peer: HttpPeer, strategy: str, path: str
) -> None:
    chosen = await choose(wire, strategy, peer, NO, NO, NO)
    assert list(chosen.candidates) == []
    assert [(answer.code, answer.message) for _, answer in chosen.asked] == [
        (500, "job 7 is running or queued here")
    ] * 3


@STRATEGIES
async def test_nobody_is_asked_when_it_is_late(wire: WireClient, peer: HttpPeer, strategy: str, path: str) -> None:
    chosen = await choose(wire, strategy, peer, NO, NO, YES, YES, YES, most=2)
    assert (list(chosen.candidates), len(chosen.asked), chosen.not_asked) == ([], 2, 3)
    chosen = await choose(wire, strategy, peer, NO, YES, YES, most=2)
    assert (numbers(chosen), chosen.not_asked) == ([1, 2], 0)


async def test_busyover_asks_about_the_job(wire: WireClient, peer: HttpPeer) -> None:
    await choose(wire, "BUSYOVER", peer, YES)
    assert json.loads(peer.requests[0].body) == {"jobId": 7}
