"""The checks of `make check` that are ours: each is shown something wrong."""

import importlib.util
import subprocess
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def checks(tmp_path: Path) -> types.ModuleType:
    """The checks, looking at a small repository."""
    spec = importlib.util.spec_from_file_location("check_repository", ROOT / "scripts" / "check_repository.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ROOT = tmp_path  # type: ignore[attr-defined]
    (tmp_path / "requirements").mkdir()
    _write(tmp_path, "pyproject.toml", PROJECT)
    _write(tmp_path, "requirements/run.txt", f"httptools==0.7.1 \\\n    {HASH}\nrich==14.0 \\\n    {HASH}\n")
    _write(
        tmp_path,
        "requirements/dev.txt",
        f"httptools==0.7.1 \\\n    {HASH}\nrich==14.0 \\\n    {HASH}\nruff==0.12 \\\n    {HASH}\n",
    )
    _write(tmp_path, "CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n")
    subprocess.run(("git", "init", "-q", str(tmp_path)), check=True)
    return module


HASH = "--hash=sha256:00"
PROJECT = """\
[project]
dependencies = ["httptools>=0.7"]
[project.optional-dependencies]
admin = ["rich>=14"]
[dependency-groups]
dev = ["ruff>=0.11"]
"""


def _write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _track(folder: Path) -> None:
    subprocess.run(("git", "-C", str(folder), "add", "--all"), check=True)


def test_a_sound_repository_has_no_faults(checks: types.ModuleType, tmp_path: Path) -> None:
    _write(tmp_path, "README.md", "# Title\n\nSee [below](#two-words) and [it](docs/a.md#part).\n\n## Two words\n")
    _write(tmp_path, "docs/a.md", "# Page\n\n## Part\n\n```sh\n[not](a-link)\n```\n\n[up](../README.md)\n")
    _track(tmp_path)
    faults = [fault for check in checks.CHECKS[:-1] for fault in check()]
    assert faults == []


@pytest.mark.parametrize(
    ("lock", "fault"),
    [
        (f"rich==14.0 {HASH}\n", "httptools>=0.7 is not what it pins (nothing)"),
        (f"httptools==0.6.0 {HASH}\nrich==14.0 {HASH}\n", "httptools>=0.7 is not what it pins (0.6.0)"),
        (f"httptools==0.7.1\nrich==14.0 {HASH}\n", "httptools==0.7.1 has no hash"),
    ],
)
def test_a_lock_that_is_out_of_step(checks: types.ModuleType, tmp_path: Path, lock: str, fault: str) -> None:
    _write(tmp_path, "requirements/run.txt", lock)
    assert [each for each in checks.lock_files_pin_what_is_needed() if fault in each]


@pytest.mark.parametrize("line", ["--index-url elsewhere", "a @ https://somewhere/a.whl", "--find-links=here"])
def test_a_lock_that_names_a_registry(checks: types.ModuleType, tmp_path: Path, line: str) -> None:
    _write(tmp_path, "requirements/run.txt", f"{line}\n")
    assert list(checks.lock_files_name_no_registry()) == [
        f"requirements/run.txt:1: a lock file names no registry: {line}"
    ]


def test_a_path_of_one_machine(checks: types.ModuleType, tmp_path: Path) -> None:
    # Put together here, since this file is looked at as well.
    own = str(Path("/") / "home" / "somebody" / "jobwheel")
    _write(tmp_path, "a.py", f"PATH = '{own}'\nURL = 'http://host/home/page'\n")
    _track(tmp_path)
    assert list(checks.files_name_no_place_of_one_machine()) == [f"a.py:1: a path of one machine: PATH = '{own}'"]


def test_a_source_file_that_is_too_long(checks: types.ModuleType, tmp_path: Path) -> None:
    _write(tmp_path, "src/long.py", "x = 1\n" * 301)
    _write(tmp_path, "src/fits.py", "x = 1\n" * 300)
    _write(tmp_path, "src/migrations/long.py", "x = 1\n" * 301)
    _track(tmp_path)
    assert list(checks.source_files_are_short()) == ["src/long.py: 301 lines; 300 is the most"]


def test_links_that_lead_nowhere(checks: types.ModuleType, tmp_path: Path) -> None:
    _write(tmp_path, "README.md", "# Title\n\n[a](gone.md) [b](#gone) [c](https://elsewhere/)\n")
    _track(tmp_path)
    assert list(checks.links_lead_somewhere()) == [
        "README.md: there is no gone.md",
        "README.md: there is no heading for #gone",
    ]


@pytest.mark.parametrize(
    ("version", "changelog", "fault"),
    [
        ("0.2.0.dev0", "# Changelog\n", "there is no section Unreleased"),
        ("0.2.0.dev0", "## [Unreleased]\n## [0.2.0] - 2026-12-01\n", "0.2.0 is released, but the package says"),
        ("0.2.0", "## [Unreleased]\n## [0.1.0] - 2026-12-01\n", "there is no section for 0.2.0"),
        ("0.2.0", "## [Unreleased]\n## [0.2.0] - 2026-12-01\n", None),
    ],
)
def test_versions(
    checks: types.ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    changelog: str,
    fault: str | None,
) -> None:
    monkeypatch.setattr("jobwheel.__version__", version)
    _write(tmp_path, "CHANGELOG.md", changelog)
    faults = list(checks.versions_agree())
    assert faults == [] if fault is None else fault in faults[0]


def test_a_changelog_that_says_a_thing_twice(checks: types.ModuleType, tmp_path: Path) -> None:
    entry, other = "- A thing of\n  two lines.\n", "- A thing of\n  two other lines.\n"
    text = f"# Changelog\n\n## [Unreleased]\n\n### Added\n\n{entry}{other}\n### Fixed\n\n{entry.replace('of', 'of ')}"
    _write(tmp_path, "CHANGELOG.md", text)
    (fault,) = checks.changelog_says_a_thing_once()
    assert fault == "CHANGELOG.md:14: this stands in line 7 already: - A thing of two lines."
