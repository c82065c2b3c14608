"""The audit: what ends it with an error, and what does not."""

import importlib.util
import types
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def audit() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("audit", ROOT / "scripts" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _report(*vulnerabilities: str) -> dict[str, Any]:
    found = [{"id": each, "aliases": [], "fix_versions": ["2.0"]} for each in vulnerabilities]
    return {"dependencies": [{"name": "thing", "version": "1.0", "vulns": found}, {"name": "skipped"}]}


@pytest.mark.parametrize(
    ("found", "code"), [((), 0), (("HIGH",), 0), (("UNKNOWN",), 0), (("HIGH", "CRITICAL", "LOW"), 1)]
)
def test_only_what_is_critical_is_an_error(
    audit: types.ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    found: tuple[str, ...],
    code: int,
) -> None:
    monkeypatch.setattr(audit, "_report", lambda _: _report(*found))
    monkeypatch.setattr(audit, "_severity", lambda ids: ids[0])
    assert audit.main() == code
    shown = capsys.readouterr().out
    assert f"2 packages, {len(found)} known vulnerabilities" in shown
    for severity in found:
        assert f"{severity}: thing 1.0 {severity} (fixed in: 2.0)" in shown


def test_a_database_that_cannot_be_reached_is_said_and_no_error(
    audit: types.ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> types.SimpleNamespace:
        return types.SimpleNamespace(stdout="", stderr="a traceback\nNameResolutionError: no such host\n")

    monkeypatch.setattr(audit.subprocess, "run", fails)
    assert audit.main() == 0
    assert "cannot be reached: NameResolutionError: no such host" in capsys.readouterr().out
