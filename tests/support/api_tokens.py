"""Clients that carry an API token instead of a session."""

import contextlib
from collections.abc import AsyncIterator

import httpx

from tests.support.admin_harness import AdminHarness, new_client
from tests.support.admin_jobs import Json, answer


async def make_token(admin: AdminHarness, **fields: object) -> Json:
    """A token for everybody's reading, unless the fields say otherwise."""
    return answer(await admin.client.post("/api/v1/tokens", json={"name": "deploy", **fields}), 201)


@contextlib.asynccontextmanager
async def carrying(admin: AdminHarness, token: str) -> AsyncIterator[httpx.AsyncClient]:
    async with new_client(admin.app) as client:
        client.headers["Authorization"] = f"Bearer {token}"
        yield client


@contextlib.asynccontextmanager
async def token_client(admin: AdminHarness, **fields: object) -> AsyncIterator[httpx.AsyncClient]:
    """A client with a token of its own."""
    async with carrying(admin, (await make_token(admin, **fields))["token"]) as client:
        yield client
