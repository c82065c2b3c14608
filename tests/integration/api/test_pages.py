"""The sign-in form and the status page."""

import re
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest

from jobwheel.admin.engine.figures import HealthReason
from tests.support.admin_harness import NOW_MS, AdminHarness
from tests.support.admin_jobs import add_run, change_run, make_group, make_job, register


class Page(HTMLParser):
    """The tags and the visible text of a page."""

    def __init__(self, reply: httpx.Response) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(reply.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data.split()

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


async def form(client: httpx.AsyncClient, **fields: str) -> httpx.Response:
    return await client.post("/sign-in", data=fields)


async def test_a_guest_sees_the_form_and_nothing_else(admin: AdminHarness) -> None:
    await make_job(admin, name="secret job")
    reply = await admin.guest.get("/")
    page = Page(reply)
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert [each["name"] for each in page.attributes("input")] == ["username", "password", "stay_signed_in"]
    assert "secret job" not in reply.text


async def test_the_form_signs_in_and_the_button_out(admin: AdminHarness) -> None:
    reply = await form(admin.guest, username="admin", password=admin.password)
    assert (reply.status_code, reply.headers["location"]) == (303, "/")
    assert "Max-Age=43200" in reply.headers["set-cookie"]
    assert "Healthy" in Page(await admin.guest.get("/")).text
    reply = await admin.guest.post("/sign-out")
    assert (reply.status_code, reply.headers["location"]) == (303, "/")
    assert "Password" in Page(await admin.guest.get("/")).text
    assert (await admin.guest.get("/api/v1/session")).status_code == 401


async def test_the_form_keeps_people_signed_in_for_a_week(admin: AdminHarness) -> None:
    reply = await form(admin.guest, username="admin", password=admin.password, stay_signed_in="yes")
    assert "Max-Age=604800" in reply.headers["set-cookie"]


async def test_a_wrong_password_shows_the_form_again(admin: AdminHarness) -> None:
    reply = await form(admin.guest, username='"><script>x</script>', password="wrong")
    page = Page(reply)
    assert reply.status_code == 401
    assert "the user name or the password is wrong" in page.text
    assert page.attributes("input")[0]["value"] == '"><script>x</script>'
    assert page.attributes("script") == []
    assert "wrong-password" not in reply.text


async def test_too_many_tries_are_told(admin: AdminHarness) -> None:
    for _ in range(5):
        await form(admin.guest, username="admin", password="wrong")
    reply = await form(admin.guest, username="admin", password=admin.password)
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "2")
    assert "try again in 2 s" in Page(reply).text


async def test_an_empty_or_odd_form(admin: AdminHarness) -> None:
    for content in (b"", b"username=admin", b"username=%ff&password=%00", b"a" * 10_000):
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        assert (await admin.guest.post("/sign-in", content=content, headers=headers)).status_code == 401


async def test_an_empty_installation(admin: AdminHarness) -> None:
    text = Page(await admin.client.get("/")).text
    for words in ("Healthy.", "No group yet.", "No job yet.", "No run yet.", "All times are UTC"):
        assert words in text


async def test_it_shows_groups_jobs_and_runs(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    await register(admin, "orders", "http://10.0.0.7:9999/")
    job = await make_job(admin, group_id, name="settle accounts", running=True)
    await make_job(admin, group_id, name="by hand", schedule_type="NONE", schedule_conf="")
    run_id = await add_run(admin, job["id"])
    done: dict[str, Any] = {"phase": None, "outcome": "timed_out", "sent_ms": NOW_MS + 12, "handle_msg": "too slow"}
    await change_run(admin, run_id, **done, accepted_ms=NOW_MS + 20, ended_ms=NOW_MS + 65_020)
    await add_run(admin, job["id"])
    page = Page(await admin.client.get("/"))
    for words in (
        "http://10.0.0.7:9999/",
        "every 5 seconds",
        "never by itself",
        "running 2026-11-27 02:30:05.000",
        "stopped \N{EN DASH}",
        "timed out",
        "12 ms 1 min 5 s",
        "too slow",
        "pending",
    ):
        assert words in page.text
    assert {"http-equiv": "refresh", "content": "5"} in page.attributes("meta")


async def test_a_run_that_was_not_sent_says_why_in_a_line(admin: AdminHarness) -> None:
    job = await make_job(admin)
    run_id = await add_run(admin, job["id"])
    told = "type: MANUAL\nattempt: 1\nno live address\n\u2192 tried again after 1 s: run 9"
    await change_run(admin, run_id, phase=None, outcome="failed", trigger_msg=told)
    text = Page(await admin.client.get("/")).text
    assert "no live address \u2192 tried again after 1 s: run 9" in text
    assert "attempt: 1" not in text


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [("succeeded", "good"), ("lost", "bad"), ("killed", "idle"), ("covered", "idle"), (None, "open")],
)
async def test_what_was_wanted_so_is_no_failure(admin: AdminHarness, outcome: str | None, kind: str) -> None:
    job = await make_job(admin)
    await change_run(admin, await add_run(admin, job["id"]), phase=None if outcome else "pending", outcome=outcome)
    states = [each.get("class") for each in Page(await admin.client.get("/")).attributes("span")]
    assert states[-1] == f"state {kind}"


async def test_an_executor_that_drains_is_marked(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    await register(admin, "orders", "http://10.0.0.7:9999/")
    assert "draining" not in Page(await admin.client.get("/")).text
    drained = await admin.client.post(f"/api/v1/groups/{group_id}/drain", json={"address": "http://10.0.0.7:9999/"})
    assert drained.status_code == 200
    assert "http://10.0.0.7:9999/ draining" in Page(await admin.client.get("/")).text


async def test_a_job_that_waits_for_the_end_of_a_run_says_so(admin: AdminHarness) -> None:
    job = await make_job(admin, schedule_type="FIX_DELAY", schedule_conf="10", running=True)
    await admin.client.post(f"/api/v1/jobs/{job['id']}/run")
    text = Page(await admin.client.get("/")).text
    assert "10 seconds after the end of each run running after the run under way" in text


async def test_trouble_is_told_in_words(admin: AdminHarness) -> None:
    admin.status.said = [HealthReason("no_pass", "No scheduling pass has succeeded for 12 s.")]
    page = Page(await admin.client.get("/"))
    assert "Not healthy." in page.text
    assert "No scheduling pass has succeeded for 12 s. no_pass" in page.text


async def test_what_people_and_programs_wrote_is_text(admin: AdminHarness) -> None:
    evil = '<script>alert("x")</script><img src=x onerror=y>'
    group_id = await make_group(admin, title=evil[:64])
    job = await make_job(admin, group_id, name=evil, author=evil, schedule_conf="0/5 * * * * ?")
    run_id = await add_run(admin, job["id"])
    await change_run(admin, run_id, phase=None, outcome="failed", handle_msg=evil, executor_address=evil)
    admin.status.said = [HealthReason("evil", evil)]
    page = Page(await admin.client.get("/"))
    assert page.attributes("script") == []
    assert page.attributes("img") == []
    assert page.text.count("<script>alert") >= 4


async def test_a_job_that_somebody_broke_in_the_database_does_not_break_the_page(admin: AdminHarness) -> None:
    job = await make_job(admin)
    statement = "UPDATE xxl_job_info SET schedule_conf = 'nonsense', executor_block_strategy = NULL"
    await admin.database.write(lambda c: c.exec_driver_sql(statement))
    assert "unusable" in Page(await admin.client.get("/")).text
    assert (await admin.client.get(f"/api/v1/jobs/{job['id']}")).status_code == 200


async def test_the_headers_forbid_scripts_frames_and_guessing(admin: AdminHarness) -> None:
    for path in ("/", "/health", "/api/v1/jobs", "/assets/style.css", "/nothing"):
        headers = (await admin.client.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "script-src" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


async def test_the_pages_keep_to_the_policy(admin: AdminHarness) -> None:
    await make_job(admin)
    for client in (admin.guest, admin.client):
        reply = await client.get("/")
        page = Page(reply)
        assert not page.attributes("script")
        assert not page.attributes("style")
        for tag, attributes in page.tags:
            assert not [name for name in attributes if name == "style" or name.startswith("on")], tag
        assert [each["href"] for each in page.attributes("link")] == ["/assets/style.css"]
        assert not re.search(r"https?://(?!10\.)", reply.text)


async def test_the_style_sheet(admin: AdminHarness) -> None:
    reply = await admin.guest.get("/assets/style.css")
    assert reply.headers["content-type"] == "text/css; charset=utf-8"
    assert "prefers-color-scheme: dark" in reply.text
    assert "url(" not in reply.text
