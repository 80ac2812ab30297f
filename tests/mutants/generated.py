"""``python -m tests.mutants.generated [MODULE…]``: every mutant that mutmut makes, against the fast tests.

It works in a copy of the source tree, ``build/mutmut``, which is made anew each time; without modules it takes all
of `SCORED`. Prints the score of each module and the survivors, and writes them to ``build/mutmut.json``. The exit
status is 1 if less than 95 % are killed in one of them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from tests.mutants.workshop import ROOT

WANTED = 0.95
# The modules that are scored, and the tests that answer for each: the pure ones, without a server.
SCORED: dict[str, tuple[str, ...]] = {
    "canonical": (
        "tests/unit/test_canonical.py",
        "tests/unit/test_canonical_exactly.py",
        "tests/unit/test_values.py",
    ),
    "decide": ("tests/unit/test_decide.py", "tests/unit/test_decide_exactly.py", "tests/unit/test_property.py"),
    "gates.state": ("tests/gates/test_state.py", "tests/gates/test_events.py"),
    "lifecycle": (
        "tests/unit/test_lifecycle.py",
        "tests/unit/test_lifecycle_checks.py",
        "tests/unit/test_lifecycle_looks.py",
        "tests/unit/test_lifecycle_observe.py",
        "tests/unit/test_lifecycle_reviews.py",
        "tests/unit/test_lifecycle_races.py",
        "tests/unit/test_hostile_decisions.py",
        "tests/reviews/test_reviews.py",
    ),
}
_COPIED = ("corrobo_core", "integrations", "tests", "examples", "pyproject.toml")
_TREE = ROOT / "build" / "mutmut"
_REPORT = ROOT / "build" / "mutmut.json"  # also of modules that were scored before
_KILLED = (1, 3)  # pytest: a test failed, or could not run
_TIMEOUTS = (-24, 24, 36, 152, 255)


@dataclass(frozen=True)
class Score:
    """How many mutants of a module there were and were killed, and the edit of each one that was not."""

    mutants: int
    killed: int
    survivors: dict[str, str]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.generated", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of {', '.join(SCORED)}")
    parser.add_argument("--children", type=int, default=1, help="how many mutants are tried at the same time")
    given = parser.parse_args()
    if unknown := set(given.modules) - set(SCORED):
        parser.error(f"not scored: {', '.join(sorted(unknown))}")
    scores = {}
    for module in given.modules or SCORED:
        _run(module, given.children)
        scores[module] = score = _score(module)
        print(f"{module:<12} {score.killed} of {score.mutants} killed", flush=True)
        for name, diff in score.survivors.items():
            print(f"\n{name}\n{diff}", flush=True)
    known = json.loads(_REPORT.read_text("utf-8")) if _REPORT.exists() else {}
    report = {**known, **{module: asdict(score) for module, score in scores.items()}}
    _REPORT.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    return int(any(score.killed < WANTED * score.mutants for score in scores.values()))


def _run(module: str, children: int) -> None:
    shutil.rmtree(_TREE, ignore_errors=True)
    for name in _COPIED:
        source, target = ROOT / name, _TREE / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    (_TREE / "setup.cfg").write_text(_settings(module), "utf-8")
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(children)]
    subprocess.run(command, cwd=_TREE, env=_environment(), check=True)


def _settings(module: str) -> str:
    options = ["-p", "no:cacheprovider", "-x", "-q", "--hypothesis-seed=0", "-k", "not sqlite and not postgres"]
    lists = {
        "source_paths": ["corrobo_core"],
        "only_mutate": [_file(module)],
        "also_copy": ["integrations", "examples"],
        "pytest_add_cli_args": options,
        "pytest_add_cli_args_test_selection": SCORED[module],
    }
    lines = [f"{name} =\n" + "\n".join(f"    {value}" for value in values) for name, values in lists.items()]
    return "\n".join(["[mutmut]", *lines, "use_git_change_detection = false", "timeout_constant = 20", ""])


def _file(module: str) -> str:
    return f"corrobo_core/{module.replace('.', '/')}.py"


def _environment() -> dict[str, str]:
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    environment.pop("PYTHONPATH", None)
    return environment


def _score(module: str) -> Score:
    meta = json.loads((_TREE / "mutants" / f"{_file(module)}.meta").read_text("utf-8"))
    codes: dict[str, int | None] = meta["exit_code_by_key"]
    survivors = {name: _diff(name) for name, code in codes.items() if code not in (*_KILLED, *_TIMEOUTS)}
    return Score(len(codes), len(codes) - len(survivors), survivors)


def _diff(name: str) -> str:
    command = [sys.executable, "-m", "mutmut", "show", name]
    shown = subprocess.run(command, cwd=_TREE, env=_environment(), capture_output=True, text=True, check=False)
    return "\n".join(_changed(shown.stdout))


def _changed(diff: str) -> Iterator[str]:
    for line in diff.splitlines():
        if line[:1] in "+-@" and not line.startswith(("+++", "---")):
            yield line


if __name__ == "__main__":
    sys.exit(main())
