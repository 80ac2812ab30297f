"""What the contract suite passes, and what it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from corrobo_core import Attempt, ContractError, UsageError, decide, effect
from corrobo_core.commands import Open
from corrobo_core.decide import TABLE
from corrobo_core.records import Decision, Reason
from corrobo_core.rulings import Approval
from corrobo_core.testing import ContractReport, FaultKind, ScenarioStatus, VirtualLedger, verify_contract
from corrobo_core.testing.example import AsyncRefundContract, FakePayments, RefundContract
from tests.contracts.bad import ALL, BAD, Bad
from tests.contracts.good import GOOD, Good, ReviewedRefund, async_twin


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


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.contract.__name__)
def test_a_bad_contract_with_coroutines_fails_it_too(bad: Bad) -> None:
    target = bad.target()
    contract: Any = async_twin(bad.contract)(target)  # type: ignore[call-arg]  # the twins' own
    (result,) = verify_contract(contract, target, scenarios=[bad.scenario]).results
    assert result.status is ScenarioStatus.FAILED
    assert bad.says in result.detail


# -- a library that breaks its rules is seen through the same scenarios ----------------------------------------


def failing(contract: Callable[[FakePayments], Any] = RefundContract) -> set[str]:
    payments = FakePayments()
    return {result.name for result in verify_contract(contract(payments), payments).failures}


def test_D4_not_waiting_for_the_window_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = (Reason.SETTLING, Reason.IN_FLIGHT_NOT_RULED_OUT)
    monkeypatch.setattr(decide, "TABLE", tuple(row for row in TABLE if row.reason not in waits))
    assert failing() > {"lands_before_window_ends", "answers_before_effect", "cancelled_during_write"}


def test_O2_taking_every_absence_for_proven_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(row for row in TABLE if row.reason is Reason.SAFE_RETRY)
    unknown = tuple(replace(row, evidence=other.evidence) for other in TABLE if other.reason is None)
    monkeypatch.setattr(decide, "TABLE", unknown + TABLE)
    assert failing() >= {"read_fails", "read_cannot_prove_absence"}


def test_L9_sending_however_late_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corrobo_core.lifecycle._Pass._not_after", lambda *_: None)
    assert failing() == {"paused_before_send"}


@pytest.mark.parametrize("contract", [RefundContract, AsyncRefundContract])
def test_C2_a_ledger_that_forgets_is_seen(
    monkeypatch: pytest.MonkeyPatch, contract: Callable[[FakePayments], Any]
) -> None:
    perform = VirtualLedger.perform

    def forgetful(ledger: VirtualLedger, command: Any) -> Any:
        if isinstance(command, Open):
            ledger._rows.clear()
        return perform(ledger, command)

    monkeypatch.setattr(VirtualLedger, "perform", forgetful)
    assert failing(contract) > {"normal", "crash_at_every_command", "two_callers", "cancelled_after_write"}


def test_R5_an_approval_that_never_ends_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def for_ever(operation: object, decisions: Sequence[Decision], *_: object) -> Approval | None:
        return Approval(decisions[-1], None) if decisions else None

    monkeypatch.setattr("corrobo_core.lifecycle.approval_in_force", for_ever)
    assert failing(ReviewedRefund) == {"review_expires"}


# -- what cannot be verified -----------------------------------------------------------------------------------


def test_what_a_target_cannot_do_is_not_applicable_and_no_pass() -> None:
    payments = FakePayments(lands_within=None)
    payments.supports, payments.page_size = (), None
    report = verify_contract(RefundContract(payments), payments)
    assert not report.failures
    assert {result.name for result in report.results if result.status is ScenarioStatus.PASSED} == {
        *("normal", "two_decisions", "identity_reused", "paused_before_send"),
    }
    reasons = {result.name: result.detail for result in report.not_applicable}
    assert reasons["response_lost"] == "the target does not support 'response_lost'"
    assert reasons["lands_at_its_latest"].endswith("set its lands_within")


def test_a_report_of_nothing_is_no_pass() -> None:
    payments = FakePayments()
    payments.supports = frozenset(FaultKind) - {FaultKind.REFUSED}
    report = verify_contract(RefundContract(payments), payments, scenarios=["refused"])
    assert not report.passed
    assert str(report).splitlines() == [
        "payments/refund: 0 passed, 0 failed, 1 not applicable",
        "refused  not applicable  the target does not support 'refused'",
    ]


def test_an_unknown_scenario_is_refused_with_those_there_are() -> None:
    payments = FakePayments()
    with pytest.raises(UsageError, match="'lost' is none; choose from normal, response_lost"):
        verify_contract(RefundContract(payments), payments, scenarios=["lost"])


def test_a_function_that_is_no_effect_is_refused() -> None:
    nothing: Any = print
    with pytest.raises(UsageError, match="contract: pass an effect, not a builtin_function_or_method"):
        verify_contract(nothing, FakePayments())


def test_an_incomplete_contract_is_refused_before_anything_is_played() -> None:
    @effect("payments/refund", identity=lambda refund_id: refund_id)
    def refund(attempt: Attempt, refund_id: str) -> None:
        raise AssertionError("nothing is sent")

    with pytest.raises(ContractError, match=r"observe: is missing|observe is missing"):
        verify_contract(refund, FakePayments())


def test_real_time_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine: here every look at the stopwatch takes an hour."""
    hours = iter(range(10**9))

    def slow() -> float:
        return next(hours) * timedelta(hours=1).total_seconds()

    for module in ("hooks", "attempt", "ledgers.memory", "testing.clock"):
        monkeypatch.setattr(f"corrobo_core.{module}.stopwatch", slow)
    payments = FakePayments()
    report: ContractReport = verify_contract(RefundContract(payments), payments)
    assert report.passed, report
