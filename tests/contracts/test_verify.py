"""What the contract suite passes, and what it fails."""

from __future__ import annotations

import pytest

from corrobo_core.testing import verify_contract
from tests.contracts.bad import ALL, BAD, Bad
from tests.contracts.good import GOOD, Good


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good.contract.__name__)
def test_a_contract_that_holds_passes_every_scenario_that_applies(good: Good) -> None:
    target = good.target()
    report = verify_contract(good.contract(target), target)
    assert not report.failures, report
    assert {result.name for result in report.not_applicable} == good.not_applicable, report


def test_every_scenario_is_passed_by_some_contract() -> None:
    assert not frozenset.intersection(*(good.not_applicable for good in GOOD))


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.contract.__name__)
def test_a_bad_contract_fails_the_scenario_that_is_about_it(bad: Bad) -> None:
    target = bad.target()
    report = verify_contract(bad.contract(target), target)
    failed = {result.name: result.detail for result in report.failures}
    assert bad.says in failed.pop(bad.scenario, "passed"), report
    assert failed.keys() == bad.also or bad.also == ALL, report
    assert not report.passed
