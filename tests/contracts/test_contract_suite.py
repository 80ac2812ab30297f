"""The contract suite as pytest items, and its plugin."""

from __future__ import annotations

import subprocess
import sys

import pytest

from corrobo_core.testing import scenario_names

pytest_plugins = ["pytester"]

SUITE = """
import pytest
from corrobo_core.testing import ContractSuite
from corrobo_core.testing.example import *


class TestRefund(ContractSuite):
    @pytest.fixture
    def target(self):
        return FakePayments()

    @pytest.fixture
    def contract(self, target):
        return {contract}(target)


def test_other():
    pass
"""
BAD = """
class Bad(RefundContract):
    responds_after_effect = True
"""
PLAIN = ("-p", "no:cacheprovider", "-p", "no:asyncio")
APPLY = len(scenario_names()) - 4  # see tests.contracts.good


def run(pytester: pytest.Pytester, suite: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(suite)
    return pytester.runpytest_inprocess(*PLAIN, *arguments)


@pytest.mark.parametrize("contract", ["RefundContract", "AsyncRefundContract"])
def test_each_scenario_is_one_item_and_what_does_not_apply_is_no_pass(
    pytester: pytest.Pytester, contract: str
) -> None:
    result = run(pytester, SUITE.format(contract=contract), "-rs")
    result.assert_outcomes(passed=APPLY + 1, skipped=4)
    result.stdout.fnmatch_lines(
        [
            f"contract scenarios: {APPLY} passed, 0 failed, 4 not applicable",
            "SKIPPED*: key_retention_over is not applicable: the contract declares no key_retention",
        ]
    )


def test_a_failure_says_what_was_seen_and_what_to_change(pytester: pytest.Pytester) -> None:
    result = run(pytester, SUITE.format(contract="Bad").replace("class TestRefund", BAD + "\n\nclass TestRefund"))
    result.assert_outcomes(passed=APPLY, failed=1, skipped=4)
    result.stdout.fnmatch_lines(
        [
            "answers_before_effect: The answer says that all is well, and the effect appears later.",
            "*effects at the target: 2, wanted: 1*responds_after_effect is declared*",
            f"contract scenarios: {APPLY - 1} passed, 1 failed, 4 not applicable",
        ]
    )


def test_chosen_scenarios_run_and_other_tests_are_let_alone(pytester: pytest.Pytester) -> None:
    chosen = ["--corrobo-scenario", "response_lost", "--corrobo-scenario=two_callers", "-v"]
    result = run(pytester, SUITE.format(contract="RefundContract"), *chosen)
    result.assert_outcomes(passed=3, deselected=len(scenario_names()) - 2)
    result.stdout.fnmatch_lines(
        [
            "*::test_scenario[[]response_lost[]] PASSED*",
            "*::test_scenario[[]two_callers[]] PASSED*",
            "*::test_other PASSED*",
        ]
    )


def test_a_scenario_that_does_not_exist_is_refused_with_those_that_do(pytester: pytest.Pytester) -> None:
    result = run(pytester, SUITE.format(contract="RefundContract"), "--corrobo-scenario=respones_lost")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*'respones_lost' is none; choose from normal, response_lost, *"])


@pytest.mark.parametrize("fixture", ["target", "contract"])
def test_a_suite_without_a_fixture_says_which(pytester: pytest.Pytester, fixture: str) -> None:
    suite = SUITE.format(contract="RefundContract").replace(f"def {fixture}(", "def something_else(")
    result = run(pytester, suite, "--corrobo-scenario=normal")
    result.assert_outcomes(passed=1, errors=1, deselected=len(scenario_names()) - 1)
    result.stdout.fnmatch_lines([f"*NotImplementedError: override the fixture `{fixture}`*"])


def test_the_clock_and_the_ledger_of_a_test_stand_still(pytester: pytest.Pytester) -> None:
    test = """
        import time
        from datetime import timedelta
        from corrobo_core import Disposition, EffectRunner
        from corrobo_core.testing import Fault, FaultKind
        from corrobo_core.testing.example import FakePayments, RefundContract

        def test_a_refund_that_never_arrives_is_sent_again_after_its_window(corrobo_clock, corrobo_ledger):
            payments = FakePayments(corrobo_clock)
            payments.plan(Fault(FaultKind.REQUEST_LOST))
            runner, refund = EffectRunner(corrobo_ledger), RefundContract(payments)
            began = time.monotonic()
            first = runner.run(refund, *payments.intent(1))
            assert first.wait == refund.in_flight_window + timedelta(microseconds=1)
            assert runner.run(refund, *payments.intent(1)).wait == first.wait
            corrobo_clock.pass_by(first.wait)
            assert runner.run(refund, *payments.intent(1)).disposition is Disposition.COMPLETE
            assert (payments.effects(), payments.writes()) == (1, 2)
            assert time.monotonic() - began < 5
    """
    run(pytester, test).assert_outcomes(passed=1)


def test_a_run_without_contract_suites_does_not_even_import_the_library(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_nothing():
            assert "pytest_corrobo" in sys.modules
            assert not any(name.partition(".")[0] == "corrobo_core" for name in sys.modules)
        """
    )
    result = pytester.runpytest_subprocess(*PLAIN)
    result.assert_outcomes(passed=1)
    assert "contract scenarios" not in result.stdout.str()


def test_the_library_does_not_import_pytest() -> None:
    """Neither the suite's own parts nor `verify_contract`."""
    code = (
        "import sys; from corrobo_core.testing import verify_contract; from corrobo_core.testing.example import *;"
        "payments = FakePayments(); report = verify_contract(RefundContract(payments), payments);"
        "assert report.passed, report; assert 'pytest' not in sys.modules; print(report)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"payments/refund: {APPLY} passed, 0 failed, 4 not applicable\nnormal ")
