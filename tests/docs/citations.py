"""Tables whose rows are proven by tests: read from a page, and held against the tests that there are.

A page has tables, ``| id | … |``, and under them a list, ``- **id** (rules) `tests/file.py::test_name`, …``.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tests.docs.session import ROOT

_ID = r"[A-Z]?\d+(?:\.\d+)?"


@dataclass(frozen=True)
class Proof:
    """What stands behind one row: the rules that it rests on, the tests that it cites, and the whole text."""

    rules: list[str]
    tests: list[str]
    text: str


def rows(page: str) -> Iterator[tuple[str, list[str]]]:
    """Id and further cells of every row of a page's tables."""
    for line in page.splitlines():
        if re.match(rf"\| {_ID} \|", line):
            row, *cells = [cell.strip() for cell in line.strip("|").split("|")]
            yield row, cells


def proofs(page: str) -> Iterator[tuple[str, Proof]]:
    """What a page's lists have for each id."""
    for row, rules, text in re.findall(
        rf"^- \*\*({_ID})\*\*(?:\s+\(([^)]*)\))?\s+((?:.+\n)(?:  .+\n)*)", page, re.MULTILINE
    ):
        yield row, Proof(re.findall(r"\w+", rules), cited(text), text)


def cited(text: str) -> list[str]:
    """The tests that a text cites."""
    return re.findall(r"`(tests/[^`]+)`", text)


def faults(page: str, columns: int) -> Iterator[str]:
    """What is wrong with a page's tables and citations, one sentence each.

    Args:
        page: its text.
        columns: how many cells a row has beside its id.
    """
    table, listed = list(rows(page)), list(proofs(page))
    for kind in (table, listed):
        ids = [row for row, _ in kind]
        yield from (f"{row} stands twice" for row in sorted({row for row in ids if ids.count(row) > 1}))
    for row, cells in table:
        if len(cells) != columns:
            yield f"{row} has {len(cells)} cells"
        if not all(cells):
            yield f"{row} has an empty cell"
    proof = dict(listed)
    for row, _ in table:
        if row not in proof:
            yield f"{row} has no proof"
        elif not proof[row].tests:
            yield f"{row} cites no test"
    yield from (f"{row} is proven and in no table" for row in sorted(proof.keys() - dict(table)))
    yield from (f"{test} does not exist" for test in missing(cited(page)))


def missing(tests: list[str]) -> Iterator[str]:
    """Those that there are not: ``tests/file.py::test_name``, of a class or not, with parameters or not."""
    written = {test for test in tests if _is_written(test)}
    yield from (test for test in tests if test not in written)
    with_parameters = [test for test in tests if test in written and "[" in test]
    _collect({_file(test) for test in with_parameters})
    yield from (test for test in with_parameters if test not in _collected[_file(test)])


def _file(test: str) -> str:
    return test.partition("::")[0]


def _is_written(test: str) -> bool:
    name = test.partition("::")[2].partition("[")[0]
    return (ROOT / _file(test)).is_file() and name in functions_in(_file(test))


@cache
def functions_in(file: str) -> frozenset[str]:
    """Names of the tests in a file, of classes and not."""
    names: set[str] = set()
    for node in ast.parse((ROOT / file).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef))
            names |= {f"{node.name}::{method.name}" for method in methods}
    return frozenset(name for name in names if name.rpartition("::")[2].startswith("test_"))


_collected: dict[str, set[str]] = {}


def _collect(files: set[str]) -> None:
    """Only pytest knows the parameters of a test; it takes seconds, so each file is asked about once."""
    new = sorted(files - _collected.keys())
    if not new:
        return
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *new]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    for file in new:
        _collected[file] = {line for line in done.stdout.splitlines() if _file(line) == file}
