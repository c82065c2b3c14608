"""What the documentation says can be typed, and can be run."""

import re
import types
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from flask import Flask

from jobwheel import Executor
from jobwheel.cli.app import command_paths

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|`|\$\(|[ /])jobwheel ((?:[a-z]+(?:-[a-z]+)* ?)+)", re.MULTILINE)


def _blocks(language: str) -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for kind, text in BLOCK.findall(page.read_text()):
            if kind == language:
                yield f"{page.relative_to(ROOT)}", text


def test_the_readme_shows_the_smallest_example_as_it_is() -> None:
    shown = [text for page, text in _blocks("python") if page == "README.md"]
    assert shown == [(ROOT / "examples" / "minimal.py").read_text()]


# Its blocks are parts of a project, which `examples/django_project` is.
DJANGO = "docs/how-to/embed-in-django.md"


EXECUTORS = [block for block in _blocks("python") if block[0] != DJANGO]


def _run(page: str, text: str) -> tuple[Executor, dict[str, object]]:
    """What a module of this text defines, and its one executor."""
    module = types.ModuleType("example")
    exec(compile(text, page, "exec"), module.__dict__)
    (executor,) = [value for value in vars(module).values() if isinstance(value, Executor)]
    return executor, vars(module)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for what an executor makes; nothing of it is left to be done at the end of the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jobwheel.executor.executor.before_exit", lambda callback: None)


@pytest.mark.parametrize(("page", "text"), EXECUTORS)
@pytest.mark.usefixtures("elsewhere")
def test_each_example_is_an_executor(page: str, text: str) -> None:
    executor, _ = _run(page, text)
    executor.stop_in_background()


@pytest.mark.usefixtures("elsewhere")
def test_an_executor_that_is_mounted_in_flask_answers_there() -> None:
    (text,) = [text for page, text in EXECUTORS if "DispatcherMiddleware" in text]
    executor, names = _run("embed-in-flask.md", text)
    try:
        app = names["app"]
        assert isinstance(app, Flask)
        assert app.test_client().post("/jobwheel/beat", json={}).get_json()["code"] == 200
    finally:
        executor.stop_in_background()


@pytest.mark.usefixtures("elsewhere")
async def test_an_executor_that_is_mounted_in_fastapi_answers_there() -> None:
    (text,) = [text for page, text in EXECUTORS if "app.mount" in text]
    executor, names = _run("embed-in-fastapi.md", text)
    app = names["app"]
    assert isinstance(app, FastAPI)
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 50000))
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        assert (await client.post("/jobwheel/beat", json={})).json()["code"] == 200
    assert not executor.started


def _typed() -> list[tuple[str, str]]:
    """Each command in a block for the shell, and in a line between backticks."""
    found = []
    for page in PAGES:
        text = page.read_text()
        places = [body for kind, body in BLOCK.findall(text) if kind in ("sh", "ini")]
        places += re.findall(r"`(jobwheel [^`]*)`", BLOCK.sub("", text))
        found += [(str(page.relative_to(ROOT)), words) for place in places for words in COMMAND.findall(place)]
    return found


def test_commands_are_found_in_the_pages() -> None:
    assert len(_typed()) > 20


@pytest.mark.parametrize(("page", "words"), sorted(set(_typed())))
def test_each_command_of_the_documentation_exists(page: str, words: str) -> None:
    typed = tuple(words.split())
    assert any(typed[: len(path)] == path for path in command_paths()), f"{page}: jobwheel {words}"


def test_each_make_target_of_the_documentation_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page, text in _blocks("sh"):
        for target in re.findall(r"^make (\w+)", text, re.MULTILINE):
            assert target in targets, page
