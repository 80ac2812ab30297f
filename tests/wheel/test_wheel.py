"""The built wheel, installed in an empty environment and used from a folder outside of the source tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from corrobo_core.testing import scenario_names

ROOT = Path(__file__).parents[2]
INSIDE = Path(__file__).parent / "inside"
NOT_APPLICABLE = 4  # see tests.contracts.good
OUTCOMES = re.compile(r"(\d+) (passed|failed|skipped|errors?)")


class Empty:
    """An environment that holds what it is given and nothing else."""

    def __init__(self, folder: Path) -> None:
        self._python = folder / "bin" / "python"
        self._check([sys.executable, "-m", "venv", "--without-pip", folder])

    def install(self, *what: str) -> None:
        """With the pip of these tests, which is not in there."""
        quick = ["-qq", "--no-compile", "--disable-pip-version-check"]
        self._check([sys.executable, "-m", "pip", "--python", self._python, "install", *quick, *what])

    def pytest(self, file: Path, **env: str) -> tuple[dict[str, int], str]:
        """How many of its tests passed, failed and were skipped; and what was printed."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON"))}
        command: list[str | Path] = [
            self._python,
            "-P",
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-W",
            "error",
            "-rs",
            file.name,
        ]
        done = subprocess.run(
            command, cwd=file.parent, env=clean | env, capture_output=True, text=True, check=False
        )
        shown = done.stdout + done.stderr
        return {what: int(count) for count, what in OUTCOMES.findall(shown.strip().splitlines()[-1])}, shown

    @staticmethod
    def _check(command: Sequence[str | Path]) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with the tests and programs that are run there, and no source tree above it."""
    folder = tmp_path / "outside"
    shutil.copytree(INSIDE, folder)
    shutil.copy(ROOT / "examples" / "quickstart.py", folder)
    for engine in ("temporal", "dbos"):
        readme = (ROOT / "integrations" / f"corrobo_{engine}" / "README.md").read_text()
        program = readme.split("```python\n", 1)[1].split("```", 1)[0]
        (folder / f"{engine}_readme.py").write_text(program)
    return folder


@pytest.mark.timeout(400)  # installing everything from an index, on a machine that is new
def test_the_wheel_in_an_empty_environment(
    tmp_path: Path, outside: Path, postgres_dsn: str, temporal_address: str
) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    empty, apply = Empty(tmp_path / "venv"), len(scenario_names()) - NOT_APPLICABLE

    empty.install(str(wheel), "pytest")
    outcomes, shown = empty.pytest(outside / "with_nothing_else.py")
    assert outcomes == {"passed": 4 + apply, "skipped": NOT_APPLICABLE}, shown
    assert f"contract scenarios: {apply} passed, 0 failed, {NOT_APPLICABLE} not applicable" in shown

    empty.install(f"{wheel}[all]")
    outcomes, shown = empty.pytest(
        outside / "with_all_extras.py", WHEEL_POSTGRES_DSN=postgres_dsn, TEMPORAL_ADDRESS=temporal_address
    )
    assert outcomes == {"passed": 8}, shown
