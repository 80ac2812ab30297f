"""The page about tests names what there is, and its numbers that can be counted are right."""

from __future__ import annotations

import re

from corrobo_core.testing import scenario_names
from tests.contracts.bad import BAD
from tests.docs.citations import rows
from tests.docs.session import ROOT
from tests.docs.test_reference import rules

DOCS = ROOT / "docs"
PAGE = (DOCS / "explanation" / "how-this-is-tested.md").read_text()


def test_every_folder_and_every_target_that_it_names_exists() -> None:
    for path in re.findall(r"`(tests/[^`]+)`", PAGE):
        assert list(ROOT.glob(path)), path
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)", PAGE))
    assert named
    assert named <= targets
    for path in re.findall(r"PYTEST_ARGS=(\S+?)`", PAGE):
        assert (ROOT / path).exists(), path


def test_its_counts_are_right() -> None:
    matrix = list(rows((DOCS / "failure-matrix.md").read_text()))
    cases = list(rows((DOCS / "explanation" / "what-people-report.md").read_text()))
    at_least = re.search(r"(\d+) of (\d+), by more than (\d+) rows", PAGE)
    assert at_least is not None
    cited, there_are, more_than = map(int, at_least.groups())
    assert cited == there_are == len(rules())
    assert more_than < len(matrix)
    assert f"{len(cases)} of {len(cases)}" in PAGE
    assert f"| {len(scenario_names())}; {len(BAD)} contracts that are wrong" in PAGE
    assert f"does under {len(scenario_names())} timings" in PAGE
