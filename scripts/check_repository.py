"""What `make check` verifies beyond the formatter, the linter, the types and the layers."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import jobwheel

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("requirements/run.txt", "requirements/dev.txt")
MOST_LINES = 300
# Longer ones, and why they are better whole.
LONG = {"src/jobwheel/admin/store/tables.py": "one table after the other"}

PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
HOST = re.compile(r"://|--(?:extra-)?index-url|--find-links", re.IGNORECASE)
OWN_PATH = re.compile(r"(?<![\w.:/}-])/(?:home|Users|root|work)/[A-Za-z0-9._-]+")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^- .*(?:\n  .*)*", re.MULTILINE)
RELEASE = re.compile(r"^## \[([^\]]+)\]", re.MULTILINE)


def main() -> int:
    """Print each fault on a line; 1 if there are any."""
    faults = [fault for check in CHECKS for fault in check()]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def lock_files_name_no_registry() -> Iterator[str]:
    """An address of a registry is one installation's matter."""
    for name in LOCKS:
        for number, line in enumerate((ROOT / name).read_text("utf-8").splitlines(), 1):
            if HOST.search(line):
                yield f"{name}:{number}: a lock file names no registry: {line.strip()}"


def lock_files_pin_what_is_needed() -> Iterator[str]:
    """Every direct dependency is pinned, to a version that the project allows, with a hash."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    run = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["admin"]]
    dev = project["dependency-groups"]["dev"]
    for name, wanted in zip(LOCKS, (run, [*run, *dev]), strict=True):
        text = (ROOT / name).read_text("utf-8")
        pins = {canonicalize_name(package): version for package, version in PIN.findall(text)}
        for requirement in map(Requirement, wanted):
            version = pins.get(canonicalize_name(requirement.name))
            if version is None or not requirement.specifier.contains(version, prereleases=True):
                yield f"{name}: {requirement} is not what it pins ({version or 'nothing'}): run `make lock`"
        for entry in text.replace("\\\n", " ").splitlines():
            if PIN.match(entry) and "--hash=" not in entry:
                yield f"{name}: {entry.split()[0]} has no hash"


def files_name_no_place_of_one_machine() -> Iterator[str]:
    """A path of somebody's own directory is of no use to others."""
    for path in _tracked():
        for number, line in enumerate(_text(path).splitlines(), 1):
            if OWN_PATH.search(line):
                yield f"{path}:{number}: a path of one machine: {line.strip()[:100]}"


def source_files_are_short() -> Iterator[str]:
    """Long files hold more than one thing."""
    for path in _tracked("src/*.py"):
        lines = len(_text(path).splitlines())
        if lines > MOST_LINES and "/migrations/" not in path and path not in LONG:
            yield f"{path}: {lines} lines; {MOST_LINES} is the most"


def links_lead_somewhere() -> Iterator[str]:
    """Every link from one page of ours to another, headings included."""
    for path in _tracked("*.md"):
        for target in LINK.findall(CODE.sub("", _text(path))):
            if "://" in target or target.startswith("mailto:"):
                continue
            file, _, anchor = target.partition("#")
            page = (ROOT / path).parent / file if file else ROOT / path
            if not page.exists():
                yield f"{path}: there is no {target}"
            elif anchor and anchor not in _anchors(page):
                yield f"{path}: there is no heading for {target}"


def versions_agree() -> Iterator[str]:
    """A released version stands in the changelog, one under development does not yet."""
    text = _text("CHANGELOG.md")
    if not re.search(r"^## \[?Unreleased\]?$", text, re.MULTILINE):
        yield "CHANGELOG.md: there is no section Unreleased"
    version = Version(jobwheel.__version__)
    listed = version.base_version in RELEASE.findall(text)
    if version.is_devrelease and listed:
        yield f"CHANGELOG.md: {version.base_version} is released, but the package says {version}"
    if not version.is_devrelease and not listed:
        yield f"CHANGELOG.md: there is no section for {version}, the package's version"


def changelog_says_a_thing_once() -> Iterator[str]:
    """A merge that keeps the lines of both sides doubles those that one of them has moved."""
    seen: dict[str, int] = {}
    text = _text("CHANGELOG.md")
    for entry in ENTRY.finditer(text):
        number, words = text.count("\n", 0, entry.start()) + 1, " ".join(entry[0].split())
        first = seen.setdefault(words, number)
        if first != number:
            yield f"CHANGELOG.md:{number}: this stands in line {first} already: {words[:80]}"


def reference_pages_are_up_to_date() -> Iterator[str]:
    """What `make docs` would write is what is there."""
    command = (sys.executable, str(ROOT / "scripts" / "generate_docs.py"), "--check")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    yield from done.stdout.splitlines()
    if done.returncode and not done.stdout:
        yield f"scripts/generate_docs.py: {done.stderr.strip().splitlines()[-1]}"


CHECKS: tuple[Callable[[], Iterator[str]], ...] = (
    lock_files_name_no_registry,
    lock_files_pin_what_is_needed,
    files_name_no_place_of_one_machine,
    source_files_are_short,
    links_lead_somewhere,
    versions_agree,
    changelog_says_a_thing_once,
    reference_pages_are_up_to_date,
)


def _tracked(*patterns: str) -> list[str]:
    command = ("git", "ls-files", "-z", "--", *patterns)
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def _text(path: str) -> str:
    return (ROOT / path).read_text("utf-8", errors="replace")


def _anchors(page: Path) -> set[str]:
    headings = HEADING.findall(CODE.sub("", page.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


if __name__ == "__main__":
    sys.exit(main())
