"""The tutorial, typed as it stands, with another port and the password that the first start gives."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(60),
    pytest.mark.skipif(shutil.which("curl") is None, reason="the tutorial uses curl, which is not here"),
]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "first-job.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# A reader types the password; the test puts it into the place of the terminal.
LOGIN = "jobwheel login"


@dataclass(frozen=True, slots=True)
class Reader:
    """Does what the page says, in a folder and an environment of its own."""

    folder: Path
    environ: dict[str, str]
    port: int

    def start(self, script: str) -> subprocess.Popen[str]:
        """A terminal in which a program keeps running."""
        return subprocess.Popen(
            [
                "bash",
                "-c",
                self._own(re.sub(r"^(.*jobwheel (?:admin|executor).*)$", r"exec env \1", script, flags=re.MULTILINE)),
            ],
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def type(self, script: str) -> str:
        """A terminal in which commands end; each of them must succeed."""
        done = subprocess.run(
            ["bash", "-euc", self._own(script)],
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _own(self, script: str) -> str:
        return script.replace(":8080", f":{self.port}")


@pytest.fixture
def reader(tmp_path: Path, unused_tcp_port: int) -> Reader:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("JOBWHEEL_")}
    environ |= {
        "PATH": f"{Path(sys.executable).parent}:{environ['PATH']}",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        # Where the page says 8080 without saying it.
        "JOBWHEEL_PORT": str(unused_tcp_port),
        "JOBWHEEL_URL": f"http://127.0.0.1:{unused_tcp_port}",
        "JOBWHEEL_EXECUTOR_PORT": "0",
    }
    return Reader(tmp_path, environ, unused_tcp_port)


def _wait_for(process: subprocess.Popen[str], pattern: str) -> str:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        found = re.search(pattern, line)
        if found is not None:
            return found.group(found.re.groups)
    raise AssertionError(f"no line matches {pattern}: {''.join(seen)}")


def test_the_tutorial_works_as_it_stands(reader: Reader) -> None:
    blocks = BLOCK.findall(PAGE.read_text())
    (program,) = [text for kind, text in blocks if kind == "python"]
    (reader.folder / "jobs.py").write_text(program)
    scripts = [text for kind, text in blocks if kind == "sh"]
    first, second, *third = scripts
    assert [script.splitlines()[0] for script in scripts] == [
        "# terminal 1",
        "# terminal 2",
        *["# terminal 3"] * len(third),
    ]
    with ExitStack() as stack:
        admin = stack.enter_context(reader.start(first))
        stack.callback(admin.terminate)
        password = _wait_for(admin, r"with the password (\S+)")
        _wait_for(admin, "listens on")
        executor = stack.enter_context(reader.start(second))
        stack.callback(executor.terminate)
        _wait_for(executor, r"executor\.registered")
        shown = [
            reader.type(script.replace(LOGIN, f"{LOGIN} --stdin <<< '{password}'").replace("PASSWORD", password))
            for script in third
        ]
        executor.terminate()
        executor.communicate(timeout=15)
        admin.terminate()
        admin.communicate(timeout=15)
    assert '"name":"Count words"' in shown[1]
    assert len(shown[2].strip().splitlines()) == 4
    assert "a word: four" in shown[3]
    assert "is stopped" in shown[4]
    assert (admin.returncode, executor.returncode) == (0, 0)
