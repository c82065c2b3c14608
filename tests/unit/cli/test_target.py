import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobwheel import Executor
from jobwheel.cli.errors import TargetError
from jobwheel.cli.target import load_executor

GOOD = "from jobwheel import Executor\nexecutor = Executor(app_name='wanted')\nnumber = 7\n"


@pytest.fixture(autouse=True)
def _own_modules() -> Iterator[None]:
    before, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if name.startswith("target_"):
            del sys.modules[name]


def test_finds_the_executor_of_a_module_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "target_good.py").write_text(GOOD)
    found = load_executor("target_good:executor", tmp_path)
    assert isinstance(found, Executor)
    assert found.settings.app_name == "wanted"


def test_the_module_may_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "target_neighbour.py").write_text(GOOD)
    (tmp_path / "target_importing.py").write_text("from target_neighbour import executor\n")
    assert load_executor("target_importing:executor", tmp_path).settings.app_name == "wanted"


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("target_good", "is not of the form module:executor"),
        (":executor", "is not of the form module:executor"),
        ("target_good:", "is not of the form module:executor"),
        ("target_good:a.b", "is not of the form module:executor"),
        ("target_absent:executor", "there is no module 'target_absent' in"),
        ("target_absent.jobs:executor", "there is no module 'target_absent' in"),
        ("target_good:other", "the module target_good has no 'other'; it has executor"),
        ("target_good:number", "is a int, not a jobwheel.Executor; it has executor"),
        ("target_empty:executor", "the module target_empty has no 'executor'; it has no executor at all"),
        ("target_needs:executor", "cannot be imported: ModuleNotFoundError: No module named 'target_gone'"),
        ("target_breaks:executor", "cannot be imported: ZeroDivisionError: division by zero"),
        ("target_wrong:executor", "cannot be imported: SyntaxError"),
    ],
)
def test_says_in_a_line_what_is_wrong_with_a_target(tmp_path: Path, target: str, problem: str) -> None:
    (tmp_path / "target_good.py").write_text(GOOD)
    (tmp_path / "target_empty.py").write_text("")
    (tmp_path / "target_needs.py").write_text("import target_gone\n")
    (tmp_path / "target_breaks.py").write_text("\n\n1 / 0\n")
    (tmp_path / "target_wrong.py").write_text("def\n")
    with pytest.raises(TargetError) as raised:
        load_executor(target, tmp_path)
    assert problem in raised.value.message
    assert raised.value.message.startswith(f"{target}: ")


def test_says_where_a_module_breaks(tmp_path: Path) -> None:
    (tmp_path / "target_breaks_here.py").write_text("\n\n1 / 0\n")
    with pytest.raises(TargetError, match=r"target_breaks_here\.py, line 3"):
        load_executor("target_breaks_here:executor", tmp_path)
