"""The REST API of a live admin, signed in, and executors on the SDK beside it."""

import contextlib
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from jobwheel import Executor
from jobwheel.kernel.secret import Secret
from tests.support.admin_jobs import Json, answer
from tests.support.live_admin import LiveAdmin, live_admin, seen


@dataclass
class LiveRest:
    """A running admin, and a client that is signed in there."""

    live: LiveAdmin
    client: httpx.AsyncClient

    async def get(self, path: str) -> Json:
        return answer(await self.client.get(f"/api/v1/{path}"))

    async def post(self, path: str, body: object, status: int = 200) -> Json:
        return answer(await self.client.post(f"/api/v1/{path}", json=body), status)

    async def job(self, executors: int = 1) -> Json:
        """A job without a schedule for the handler `settle`, once the group of `orders` has so many executors."""
        group_id = await seen(lambda: self._live_group(executors))
        body = {"group_id": group_id, "name": "settle accounts", "handler": "settle", "schedule_type": "NONE"}
        return await self.post("jobs", body, 201)

    async def _live_group(self, executors: int) -> int | None:
        groups = (await self.get("groups"))["items"]
        return next((group["id"] for group in groups if len(group["live_addresses"]) >= executors), None)

    def executor(self, log_path: Path, **arguments: Any) -> Executor:
        """One on the SDK, of the app name `orders`; to be started and stopped in the background."""
        usual: dict[str, Any] = {"port": 0, "heartbeat_s": 0.05, "stop_deadline_s": 4, "log_path": log_path}
        return Executor("orders", self.live.url, self.live.token, **{**usual, **arguments})


@contextlib.asynccontextmanager
async def live_rest(path: Path, token: str | None = None, **settings: Any) -> AsyncIterator[LiveRest]:
    """A live admin with a client."""
    password = secrets.token_urlsafe(12)
    async with (
        live_admin(path, token, admin_password=Secret(password), **settings) as live,
        httpx.AsyncClient(base_url=live.url, trust_env=False) as client,
    ):
        rest = LiveRest(live, client)
        await rest.post("session", {"username": "admin", "password": password}, 201)
        yield rest
