"""Every reported case has tests that exist and, if they stand among the reports, are named by it."""

from __future__ import annotations

import re
from collections import Counter

from tests.docs.citations import faults, functions_in, proofs, rows
from tests.docs.session import ROOT

PAGE = (ROOT / "docs" / "explanation" / "what-people-report.md").read_text()
# How many there are of each kind: a case may change its tests, and never goes.
CASES = {"A": 9, "B": 16, "C": 15, "D": 14, "E": 9, "F": 10}


def named(test: str) -> set[str]:
    """The cases in a test's name: ``test_c09_to_c11_…`` is C09, C10 and C11."""
    name = test.partition("::")[2].upper()
    found = set(re.findall(r"(?<![A-Z0-9])[A-F]\d\d(?![A-Z0-9])", name.replace("_", " ")))
    for letter, first, last in re.findall(r"([A-F])(\d\d)_TO_[A-F](\d\d)", name):
        found |= {f"{letter}{number:02}" for number in range(int(first), int(last) + 1)}
    return found


def test_every_case_has_tests_that_exist() -> None:
    assert list(faults(PAGE, columns=2)) == []
    assert Counter(row[0] for row, _ in rows(PAGE)) == CASES


def test_a_test_among_the_reports_is_named_by_the_case_that_cites_it() -> None:
    cites = [(row, test) for row, proof in proofs(PAGE) for test in proof.tests]
    assert [
        (row, test) for row, test in cites if test.startswith("tests/reports/") and row not in named(test)
    ] == []


def test_every_test_among_the_reports_is_cited() -> None:
    cited = {test for _, proof in proofs(PAGE) for test in proof.tests}
    files = [f"tests/reports/{file.name}" for file in (ROOT / "tests" / "reports").glob("test_*.py")]
    assert {f"{file}::{name}" for file in files for name in functions_in(file)} - cited == set()


def test_names_are_read_as_they_are_written() -> None:
    assert named("tests/x.py::test_c09_to_c11_a_value") == {"C09", "C10", "C11"}
    assert named("tests/x.py::test_d01_d12_an_answer") == {"D01", "D12"}
    assert named("tests/x.py::test_C12_report_C06_many") == {"C12", "C06"}
    assert named("tests/x.py::test_a_name") == set()
