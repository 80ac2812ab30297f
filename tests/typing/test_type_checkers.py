"""Every wrong use in this folder is an error to every type checker, and every right one to none.

The files carry an ignore on each wrong line, so that `make check` stays clean. Here the ignores are taken out, and
what the checkers say must be exactly those lines.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
IGNORES = re.compile(r"  # type: ignore\[[^\]]+\]  # pyright: ignore\[[^\]]+\]$")
FILES = sorted(file for file in HERE.glob("*.py") if not file.name.startswith(("__", "test_")))

Lines = dict[str, set[int]]


def run(checker: str, *args: str) -> str:
    program = Path(sys.executable).with_name(checker)
    done = subprocess.run([program, *args], cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode in (0, 1), f"{checker} failed:\n{done.stdout}{done.stderr}"
    return done.stdout


def mypy(folder: Path) -> Lines:
    found: Lines = {}
    for line in run("mypy", "--strict", str(folder)).splitlines():
        if match := re.match(r"(.+?):(\d+): error: ", line):
            found.setdefault(Path(match[1]).name, set()).add(int(match[2]))
    return found


def by_pyright(checker: str) -> Callable[[Path], Lines]:
    def check(folder: Path) -> Lines:
        report = json.loads(run(checker, "--outputjson", str(folder)))
        assert report["summary"]["filesAnalyzed"] == len(FILES)
        found: Lines = {}
        for one in report["generalDiagnostics"]:
            if one["severity"] == "error":
                found.setdefault(Path(one["file"]).name, set()).add(one["range"]["start"]["line"] + 1)
        return found

    return check


CHECKERS: dict[str, Callable[[Path], Lines]] = {
    "mypy": mypy,
    "pyright": by_pyright("pyright"),
    "basedpyright": by_pyright("basedpyright"),
}


@pytest.fixture
def bare(tmp_path: Path) -> tuple[Path, Lines]:
    """A folder with the files without their ignores, and the lines that had one."""
    wrong: Lines = {}
    for file in FILES:
        lines = file.read_text().splitlines()
        wrong[file.name] = {number for number, line in enumerate(lines, 1) if IGNORES.search(line)}
        (tmp_path / file.name).write_text("\n".join(IGNORES.sub("", line) for line in lines) + "\n")
    return tmp_path, wrong


def test_there_are_wrong_uses_of_the_core_and_of_each_integration(bare: tuple[Path, Lines]) -> None:
    _, wrong = bare
    modules = {"core", "dbos_gates", "dbos_steps", "temporal_activities", "temporal_gates"}
    assert {f"{module}.py" for module in modules} <= wrong.keys()
    assert all(len(lines) >= 5 for lines in wrong.values())
    left_over = [
        file.name for file in FILES for line in file.read_text().splitlines() if "ignore[" in IGNORES.sub("", line)
    ]
    assert not left_over, "each wrong line carries one ignore for mypy and one for pyright, in this order"


@pytest.mark.parametrize("checker", CHECKERS)
def test_exactly_the_wrong_uses_are_errors(checker: str, bare: tuple[Path, Lines]) -> None:
    folder, wrong = bare
    assert CHECKERS[checker](folder) == wrong
