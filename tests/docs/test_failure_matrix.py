"""Every row of the failure matrix cites tests, and every test that it cites exists."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.docs.session import ROOT

PAGE = (ROOT / "docs" / "failure-matrix.md").read_text()
COVERED = PAGE.partition("## Not covered")[0]
HEAD = "| id | failure | true outside | on record | sent again? | twice? | what you do |"


def rows() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in COVERED.splitlines():
        if re.match(r"\| [A-Z]\d+ \|", line):
            row, *cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert row not in found, row
            found[row] = cells
    return found


def proofs() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row, text in re.findall(r"^- \*\*(\w+)\*\* ((?:.+\n)(?:  .+\n)*)", COVERED, re.MULTILINE):
        assert row not in found, row
        found[row] = re.findall(r"`(tests/[^`]+)`", text)
    return found


@cache
def cases_of(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text())
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef))
            names |= {f"{node.name}::{method.name}" for method in methods}
    return names


def assert_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert (ROOT / file).exists(), test
    assert name.startswith("test_"), test
    assert name in cases_of(file), test


def test_the_introduction_cites_tests_that_exist() -> None:
    cited = re.findall(r"`(tests/[^`]+)`", PAGE.partition("\n## ")[0])
    assert cited
    for test in cited:
        assert_exists(test)


@pytest.mark.parametrize("row", rows())
def test_a_row_says_everything_and_cites_tests_that_exist(row: str) -> None:
    cells = rows()[row]
    assert len(cells) == HEAD.count("|") - 2
    assert all(cells), "an empty cell"
    cited = proofs().get(row, [])
    assert cited, f"row {row} cites no test"
    for test in cited:
        assert_exists(test)


def test_every_proof_has_a_row_and_every_table_has_the_same_columns() -> None:
    assert proofs().keys() == rows().keys()
    assert len(rows()) > 40
    tables = re.findall(r"^\| id .*$", COVERED, re.MULTILINE)
    assert set(tables) == {HEAD}


def test_a_citation_of_no_test_is_noticed() -> None:
    assert "test_of_nothing" not in cases_of("tests/docs/test_failure_matrix.py")
    assert "test_a_citation_of_no_test_is_noticed" in cases_of("tests/docs/test_failure_matrix.py")
