"""What the contract suite passes, and what it fails."""

from __future__ import annotations

import pytest

from corrobo_core.testing import ScenarioStatus, verify_contract
from corrobo_core.testing.example import AsyncRefundContract, FakePayments, RefundContract
from tests.contracts.bad import BAD, Bad


@pytest.mark.parametrize("contract", [RefundContract, AsyncRefundContract])
def test_the_correct_contract_passes_every_scenario(contract: type[RefundContract | AsyncRefundContract]) -> None:
    payments = FakePayments()
    report = verify_contract(contract(payments), payments)
    assert {result.status for result in report.results} == {ScenarioStatus.PASSED}, report


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_contract_fails_the_scenarios_that_are_about_it(bad: Bad) -> None:
    target = bad.target()
    report = verify_contract(bad.contract(target), target)
    assert {result.name for result in report.failures} == bad.scenarios, report
