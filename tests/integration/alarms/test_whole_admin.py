"""A whole admin: what is noted when a run ends reaches a webhook, and a black hole beside it holds up nothing."""

import json
from pathlib import Path
from typing import Any

from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.store.alarm_outbox import EndedForAlarm, note_ended
from tests.support.http_peer import HttpPeer, never
from tests.support.live_admin import CLOCK, live_admin, until
from tests.support.recording_executor import accept


def port_of(peer: HttpPeer) -> int:
    assert peer._server is not None
    port: int = peer._server.sockets[0].getsockname()[1]
    return port


async def test_a_failed_run_is_told_and_runs_go_on_beside_a_black_hole(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"alarms_to_private_addresses": True, "public_url": "https://jobs.example.com"}
    async with (
        HttpPeer() as hook,
        HttpPeer(otherwise=never) as hole,
        live_admin(tmp_path, **settings) as live,
        live.executor(accept) as executor,
    ):
        await executor.register()
        channels = live.admin.services.alarm_channels
        url = f"http://127.0.0.1:{port_of(hook)}/"
        await channels.create(
            {"name": "hook", "kind": "webhook", "settings": {"url": url}, "is_default": True}, actor="test"
        )
        mail = {"host": "127.0.0.1", "port": port_of(hole), "security": "none", "from": "a@b.example", "to": ["c@d.e"]}
        await channels.create({"name": "hole", "kind": "mail", "settings": mail, "is_default": True}, actor="test")
        job = await live.job(author="Lin")
        run_id = await live.trigger(job)
        ended = EndedForAlarm(
            run_id, job.id, job.settings.group_id, Outcome.FAILED, CLOCK.now(), is_final=True, attempt=1
        )
        await live.admin.database.write(note_ended, [ended])
        await until(lambda: bool(hook.requests))
        body = json.loads(hook.requests[0].body)
        assert (body["job"], body["owner"], body["kind"]) == ("settle accounts", "Lin", "failed")
        assert body["link"] == f"https://jobs.example.com/runs/{run_id}"
        await until(lambda: bool(hole.writers))
        again = await live.trigger(job)
        await live.run_when(again, lambda run: run.accepted_ms is not None)
        assert live.admin.engine.reasons() == []
        # The hole falls in, so that the stop need not wait for it.
        for writer in hole.writers:
            writer.transport.abort()
