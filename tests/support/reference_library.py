"""The executor library of the reference, as users get it from Maven's central repository, and what is built on it.

Of the library its public API alone is used. Its jars stay where Maven puts them, in the user's repository.
"""

import fcntl
import hashlib
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.packages import MissingError, install

VERSIONS: Final = ("2.2.0", "2.3.1", "2.4.1", "2.5.0", "3.3.2")
"""At least one of each shape of messages that is published; 3.3.2 is the newest one there."""

_ROOT: Final = Path(__file__).parents[2]
_SOURCES: Final = _ROOT / "tests" / "interop" / "java"
_LOOPBACK: Final = _ROOT / "tests" / "interop" / "native" / "loopback.c"
_BUILT: Final = _ROOT / "build" / "interop"
_PACKAGES: Final = ("default-jdk-headless", "maven", "gcc", "libc6-dev")
# Sources, and the version that they are compiled against: the oldest one that has their API.
_PROGRAMS: Final = {"v22": "2.2.0", "v23": "2.3.1", "client": "2.5.0"}
_CLASSPATHS: Final = "org.apache.maven.plugins:maven-dependency-plugin:2.8:build-classpath"
_MAVEN_S: Final = 600
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
# Small, and quick to start.
_JVM: Final = ("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8")
# The library listens on all interfaces, and cannot be told otherwise: the system's call is changed beneath it.
_IPV4: Final = "-Djava.net.preferIPv4Stack=true"


@dataclass(frozen=True)
class ReferenceLibrary:
    """Programs on the library, ready to run."""

    folder: Path

    def executor(self, version: str) -> list[str]:
        """The command of an executor on this version; its arguments are still to be added."""
        return self._command("v22" if version.startswith("2.2.") else "v23", version, "ReferenceExecutor")

    def client(self) -> list[str]:
        """The command of the library's clients, of the version that they are compiled against."""
        return self._command("client", _PROGRAMS["client"], "ReferenceClient")

    def _command(self, program: str, version: str, main: str) -> list[str]:
        jars = (self.folder / version / "classpath").read_text()
        preloaded = f"LD_PRELOAD={self.folder / 'loopback.so'}"
        return ["env", preloaded, "java", *_JVM, _IPV4, "-cp", f"{self.folder / 'classes' / program}:{jars}", main]


def built_library() -> ReferenceLibrary:
    """The library's jars and the programs on them; made once, and again when a source has changed.

    Raises:
        MissingError: Java or Maven is missing and cannot be installed, or Maven cannot get the library.
    """
    install("Java", _PACKAGES, lambda: all(shutil.which(each) for each in ("java", "javac", "mvn", "cc")))
    _BUILT.mkdir(parents=True, exist_ok=True)
    library = ReferenceLibrary(_BUILT)
    # Tests that run two at once build it once.
    with (_BUILT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp, wanted = _BUILT / "stamp", _fingerprint()
        if not (stamp.exists() and stamp.read_text() == wanted and _jars_are_there()):
            stamp.unlink(missing_ok=True)
            _get_jars()
            _compile()
            stamp.write_text(wanted)
    return library


def _fingerprint() -> str:
    digest = hashlib.sha256(repr((VERSIONS, _PROGRAMS)).encode())
    for path in (_LOOPBACK, *sorted(path for path in _SOURCES.rglob("*") if path.is_file())):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _jars_are_there() -> bool:
    classpaths = [_BUILT / version / "classpath" for version in VERSIONS]
    return all(Path(jar).exists() for path in classpaths for jar in path.read_text().split(":"))


def _get_jars() -> None:
    """Let Maven fetch what is not in the user's repository, and write each version's class path."""
    template = (_SOURCES / "pom.xml").read_text()
    for version in VERSIONS:
        (_BUILT / version).mkdir(exist_ok=True)
        (_BUILT / version / "pom.xml").write_text(template.replace("@version@", version))
    modules = "".join(f"<module>{version}</module>" for version in VERSIONS)
    head = re.sub(r"<dependencies>.*</dependencies>", "", template.replace("@version@", "all"), flags=re.DOTALL)
    whole = head.replace("</project>", f"<packaging>pom</packaging><modules>{modules}</modules></project>")
    (_BUILT / "pom.xml").write_text(whole)
    arguments = [_CLASSPATHS, "-Dmdep.outputFile=classpath"]
    # Without the network first: what is there needs none, and Maven asks for nothing.
    if _maven("--offline", *arguments) is None:
        return
    said = _maven(*arguments)
    if said is not None:
        raise MissingError(f"Maven cannot get the reference's executor library (is there a network?): {said}")


def _maven(*arguments: str) -> str | None:
    """What it complains of, if it fails."""
    command = ["mvn", "--quiet", "--batch-mode", *arguments]
    try:
        done = subprocess.run(command, cwd=_BUILT, capture_output=True, text=True, check=False, timeout=_MAVEN_S)
    except subprocess.TimeoutExpired:
        return f"it has not ended after {_MAVEN_S} s"
    if done.returncode == 0:
        return None
    lines = [line for line in _COLOURS.sub("", done.stdout).splitlines() if line.startswith("[ERROR]")]
    return lines[0][:300] if lines else f"it ended with {done.returncode}"


def _compile() -> None:
    for program, version in _PROGRAMS.items():
        sources = [str(path) for folder in ("common", program) for path in sorted((_SOURCES / folder).glob("*.java"))]
        jars, classes = (_BUILT / version / "classpath").read_text(), _BUILT / "classes" / program
        command = ["javac", "-encoding", "UTF-8", "-d", str(classes), "-cp", jars, *sources]
        subprocess.run(command, check=True)
    command = ["cc", "-shared", "-fPIC", "-o", str(_BUILT / "loopback.so"), str(_LOOPBACK), "-ldl"]
    subprocess.run(command, check=True)
