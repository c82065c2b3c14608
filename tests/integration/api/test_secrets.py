"""No secret in a reply, a log line or an event."""

import logging

import pytest

from jobwheel.admin.store.tables import event, job_user
from jobwheel.admin.store.tables import setting as settings_table
from jobwheel.wire.errors import UncertainError
from tests.support.admin_harness import AdminHarness, sign_in
from tests.support.admin_jobs import add_run, change_run, make_job, register


async def test_nothing_gives_a_secret_away(admin: AdminHarness, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    session = admin.client.cookies["jobwheel_session"]
    wrong = "wrong-password-7351"
    await admin.guest.post("/api/v1/session", json={"username": "admin", "password": wrong})
    await admin.guest.post("/sign-in", data={"username": "admin", "password": wrong})
    await admin.guest.post("/api/v1/session", json={"username": "admin", "password": {"a": wrong}})
    await admin.client.post("/api/v1/session/password", json={"old_password": wrong, "new_password": wrong})
    job = await make_job(admin)
    run_id = await add_run(admin, job["id"])
    await register(admin, "orders", "http://10.0.0.7:9999/")
    await change_run(admin, run_id, accepted_ms=1, phase="accepted", executor_address="http://10.0.0.7:9999/")
    admin.log_source.page = UncertainError("http://10.0.0.7:9999/", "reset")
    replies = [
        await admin.client.get(path)
        for path in (
            "/",
            "/metrics",
            "/health",
            "/api/v1/openapi.json",
            "/api/v1/session",
            "/api/v1/groups",
            "/api/v1/jobs",
            "/api/v1/runs",
            f"/api/v1/jobs/{job['id']}/events",
            f"/api/v1/runs/{run_id}/log",
        )
    ]
    secrets = [admin.password, wrong, session, *await admin.database.read(stored_secrets)]
    told = [reply.text + repr(reply.headers) for reply in replies]
    told.append(caplog.text)
    told.append(repr(await admin.database.read(lambda c: c.execute(event.select()).all())))
    for secret in secrets:
        assert len(secret) > 10
        assert not [text for text in told if secret in text]


def stored_secrets(connection: object) -> list[str]:
    users = connection.execute(job_user.select()).all()  # type: ignore[attr-defined]
    token = connection.execute(  # type: ignore[attr-defined]
        settings_table.select().where(settings_table.c.name == "access_token")
    ).one()
    return [token.value, *(text for user in users for text in (user.password, user.password_hash))]


async def test_a_refused_password_is_not_repeated(admin: AdminHarness) -> None:
    body = {"username": "admin", "password": ["my-secret-words"]}
    assert "my-secret-words" not in (await admin.guest.post("/api/v1/session", json=body)).text


async def test_a_fault_of_ours_tells_nothing(admin: AdminHarness, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> list[object]:
        raise RuntimeError("boom-9134")

    admin.status.reasons = fail  # type: ignore[assignment,method-assign]
    reply = await admin.guest.get("/health")
    assert (reply.status_code, reply.json()["error"]["code"]) == (500, "internal")
    assert "boom-9134" not in reply.text
    assert "boom-9134" in caplog.text


async def test_a_database_that_is_away_is_told(admin: AdminHarness) -> None:
    await admin.database.write(lambda c: c.exec_driver_sql("ALTER TABLE xxl_job_info RENAME TO away"))
    reply = await admin.client.get("/api/v1/jobs")
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "database_unavailable")
    await sign_in(admin.guest, admin.password)


async def test_that_nobody_can_be_recognised_meanwhile_is_told(admin: AdminHarness) -> None:
    for table in ("jobwheel_session", "jobwheel_api_token"):
        await admin.database.write(lambda c, t=table: c.exec_driver_sql(f"ALTER TABLE {t} RENAME TO away_{t}"))  # type: ignore[misc]
    for headers in ({}, {"Authorization": "Bearer jwa_any"}):
        reply = await admin.client.get("/api/v1/jobs", headers=headers)
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "database_unavailable")
