"""The failure matrix proves its rows by tests that exist, and every rule by some row. Broken copies are noticed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from tests.docs.citations import cited, faults, proofs, rows
from tests.docs.session import ROOT
from tests.docs.test_reference import rules

PAGE = (ROOT / "docs" / "failure-matrix.md").read_text()
HEAD = "| id | failure | true outside | on record | sent again? | twice? | what you do |"
ONE_ROW = """
| id | failure | true outside | on record | sent again? | twice? | what you do |
|---|---|---|---|---|---|---|
| 1.1 | it breaks | nothing | nothing | no | no | nothing |

Proof:

- **1.1** ({rules}) `tests/docs/test_failure_matrix.py::test_a_copy_that_says_all_is_right`

## Not covered
"""


def problems(page: str) -> Iterator[str]:
    covered = page.partition("## Not covered")[0]
    yield from faults(covered, HEAD.count("|") - 2)
    yield from (
        f"{line} is another head" for line in re.findall(r"^\| id .*$", covered, re.MULTILINE) if line != HEAD
    )
    there = {row for row, _ in rows(covered)}
    for row, cells in rows(covered):
        other = set(re.findall(r"\b(?:as|in|to|or) (\w\d*\.\d+|[A-Z]\d+)\b", " ".join(cells))) - there
        yield from (f"{row} names {one}, which is no row" for one in other)
    named = {rule for _, proof in proofs(covered) for rule in proof.rules}
    yield from (f"rule {rule} is cited by no row" for rule in rules() if rule not in named)
    yield from (f"rule {rule} does not exist" for rule in sorted(named - set(rules())))


def test_every_row_cites_tests_that_exist_and_every_rule_is_cited() -> None:
    assert list(problems(PAGE)) == []
    assert cited(PAGE.partition("\n## ")[0]), "the introduction cites tests too"


def test_rows_are_numbered_without_a_gap() -> None:
    sections: dict[int, list[int]] = {}
    for row, _ in rows(PAGE):
        section, number = map(int, row.split("."))
        sections.setdefault(section, []).append(number)
    assert list(sections) == list(range(1, len(sections) + 1))
    for section, numbers in sections.items():
        assert numbers == list(range(1, len(numbers) + 1)), section


COPY = ONE_ROW.format(rules=", ".join(rules()))
TEST = "tests/docs/test_failure_matrix.py::test_a_copy_that_says_all_is_right"
ROW = "tests/unit/test_decide.py::test_each_row_decides_its_case"
BROKEN: dict[str, tuple[Callable[[str], str], str]] = {
    "cites nothing": (lambda copy: copy.replace(f"`{TEST}`", "by looking at it"), "1.1 cites no test"),
    "no proof": (lambda copy: copy.replace("- **1.1**", "- 1.1"), "1.1 has no proof"),
    "no such file": (lambda copy: copy.replace("docs/test_failure", "docs/test_no"), "matrix.py::test_a_copy"),
    "no such test": (lambda copy: copy.replace("::test_a_copy", "::test_no_copy"), "all_is_right does not exist"),
    "no test but a helper": (lambda copy: copy.replace(TEST, TEST.partition("::")[0] + "::problems"), "not exist"),
    "no such parameters": (lambda copy: copy.replace(TEST, f"{ROW}[unheard of]"), "[unheard of] does not exist"),
    "a rule uncited": (lambda copy: copy.replace("(L1, ", "("), "rule L1 is cited by no row"),
    "the last rule uncited": (lambda copy: copy.replace(f", {rules()[-1]})", ")"), f"rule {rules()[-1]} is cited"),
    "a rule in the text alone": (lambda copy: copy.replace(", D4a", "").replace("breaks", "(D4a)"), "rule D4a is"),
    "a rule unheard of": (lambda copy: copy.replace("(L1", "(L99, L1"), "rule L99 does not exist"),
    "an empty cell": (lambda copy: copy.replace("it breaks", ""), "1.1 has an empty cell"),
    "a cell too few": (lambda copy: copy.replace("| it breaks ", ""), "1.1 has 5 cells"),
    "another row unheard of": (lambda copy: copy.replace("it breaks", "as 9.9"), "1.1 names 9.9, which is no row"),
    "an old row's name": (lambda copy: copy.replace("it breaks", "as in B1"), "1.1 names B1, which is no row"),
    "a row twice": (
        lambda copy: copy.replace("| 1.1 |", "| 1.1 | it | is | there | also | no | no |\n| 1.1 |"),
        "1.1 stands",
    ),
    "a proof of nothing": (lambda copy: copy.replace("| 1.1 |", "| a |"), "1.1 is proven and in no table"),
}


def test_a_copy_that_says_all_is_right() -> None:
    assert list(problems(COPY)) == []
    assert list(problems(COPY.replace(TEST, f"{ROW}[attempts used up]"))) == []


@pytest.mark.parametrize(("breaking", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_copy_is_noticed(breaking: Callable[[str], str], said: str) -> None:
    found = list(problems(breaking(COPY)))
    assert any(said in fault for fault in found), found
