"""Copies of the source tree, in which one mutant at a time is put and judged."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from tests.mutants.judge import FOUND
from tests.mutants.mutant import Judge, Mutant

ROOT = Path(__file__).parents[2]
# What the two that judge are made of, and what they import.
_NEEDED: tuple[str, ...] = ("corrobo_core", "integrations", "tests/__init__.py", "tests/model", "tests/mutants")
_NEEDED += ("tests/crash", "tests/gates", "tests/support")
JUDGES: dict[Judge, tuple[str, ...]] = {
    "operations": ("machine", "--quick", "--only", "operations"),
    "gates": ("machine", "--quick", "--only", "gates"),
    "explorer": ("explorer", "--quick"),
}
"""How each is called, in its quick form."""
TIMEOUT = 180.0  # seconds for one of them; the quick forms take 20


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant.

    Attributes:
        caught_by: who found a violation; None: nobody did.
        said: the last line of what was found, or why nothing was.
        seconds: how long it took.
    """

    caught_by: Judge | None
    said: str
    seconds: float


class Workshop:
    """One copy of the source tree.

    Args:
        folder: empty.
        judges: who is asked.
        more: further arguments, so that they look in fewer places.
    """

    def __init__(self, folder: Path, judges: tuple[Judge, ...] = tuple(JUDGES), more: tuple[str, ...] = ()) -> None:
        self._tree, self._judges, self._more = folder, judges, more
        for name in _NEEDED:
            source, target = ROOT / name, folder / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)

    def judge(self, mutant: Mutant) -> Outcome:
        """Put a mutant in, let it be judged, and take it out again.

        Raises:
            AnchorError: the source has changed.
        """
        began = monotonic()
        source = mutant.put(self._tree)
        try:
            caught_by, said = self._ask(judge for judge in mutant.judges if judge in self._judges)
        finally:
            (self._tree / mutant.file).write_text(source, "utf-8")
        return Outcome(caught_by, said, monotonic() - began)

    def judge_as_it_is(self) -> Outcome:
        """What is said about the source without a mutant."""
        began = monotonic()
        caught_by, said = self._ask(self._judges)
        return Outcome(caught_by, said, monotonic() - began)

    def _ask(self, judges: Iterable[Judge]) -> tuple[Judge | None, str]:
        heard = []
        for judge in judges:
            status, said = self._run(judge)
            if status == FOUND:
                return judge, said
            if status != 0:
                heard.append(f"{judge}: {said}")
        return None, "; ".join(heard)

    def _run(self, judge: Judge) -> tuple[int, str]:
        # Without written bytecode: two edits of one second and one size look alike to Python.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
        environment.pop("PYTHONPATH", None)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "tests.mutants.judge", *JUDGES[judge], *self._more],
                cwd=self._tree,
                env=environment,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return -1, f"no answer within {TIMEOUT:g} s"
        return done.returncode, _told(done.stdout + done.stderr)


def _told(text: str) -> str:
    """The line that says what was found."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("AssertionError", "BROKEN"))]
    return (telling or lines or [""])[-1][:300]


@contextmanager
def workshop(judges: tuple[Judge, ...]) -> Iterator[Workshop]:
    """A copy in a temporary folder."""
    with TemporaryDirectory(prefix="corrobo-mutants-") as folder:
        yield Workshop(Path(folder).resolve(), judges)
