"""What the documentation says can be typed, and can be run."""

import re
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobwheel import Executor
from jobwheel.cli.app import command_paths

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|`|\$\(|[ /])jobwheel ((?:[a-z]+ ?)+)", re.MULTILINE)


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


@pytest.mark.parametrize(("page", "text"), [block for block in _blocks("python") if block[0] != DJANGO])
def test_each_example_is_an_executor(page: str, text: str) -> None:
    module = types.ModuleType("example")
    exec(compile(text, page, "exec"), module.__dict__)
    executors = [value for value in vars(module).values() if isinstance(value, Executor)]
    assert len(executors) == 1


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
