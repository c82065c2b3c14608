"""Look the pinned dependencies up among known vulnerabilities.

Everything that is found is printed; the exit code is 1 only for what is critical. Where the database of vulnerabilities
cannot be reached, that is said, and the exit code is 0: it is not the project's fault.
"""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("requirements/run.txt", "requirements/dev.txt")
SCORES = "https://api.osv.dev/v1/vulns/"
TIMEOUT_S = 20


def main() -> int:
    """Audit each lock file; 1 if a critical vulnerability is known."""
    critical = False
    for name in LOCKS:
        report = _report(name)
        if report is None:
            continue
        found = [(each, vulnerability) for each in report["dependencies"] for vulnerability in each.get("vulns", ())]
        print(f"{name}: {len(report['dependencies'])} packages, {len(found)} known vulnerabilities")
        for package, vulnerability in found:
            severity = _severity([vulnerability["id"], *vulnerability.get("aliases", ())])
            critical = critical or severity == "CRITICAL"
            fixed = ", ".join(vulnerability.get("fix_versions", ())) or "none yet"
            print(f"  {severity}: {package['name']} {package['version']} {vulnerability['id']} (fixed in: {fixed})")
    return 1 if critical else 0


def _report(name: str) -> dict[str, Any] | None:
    command = (sys.executable, "-m", "pip_audit", "--disable-pip", "--requirement", str(ROOT / name))
    options = ("--format", "json", "--progress-spinner", "off", "--timeout", str(TIMEOUT_S))
    try:
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False, timeout=300)
        report: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        print(f"{name}: not audited, the database of vulnerabilities did not answer in time")
        return None
    except json.JSONDecodeError:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"{name}: not audited, the database of vulnerabilities cannot be reached: {reason[:200]}")
        return None
    return report


def _severity(ids: list[str]) -> str:
    """How bad it is by the first database entry that says so; what nobody has judged is UNKNOWN."""
    for each in ids:
        try:
            with urllib.request.urlopen(SCORES + quote(each), timeout=TIMEOUT_S) as reply:
                entry = json.load(reply)
        except (urllib.error.URLError, TimeoutError, ValueError):
            continue
        severity = entry.get("database_specific", {}).get("severity")
        if severity:
            return str(severity).upper()
    return "UNKNOWN"


if __name__ == "__main__":
    sys.exit(main())
