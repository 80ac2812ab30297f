"""Reports about libraries beside others: what they import, how they are tested, what they tell (E01, E05, E07)."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from dbos import DBOS, SetWorkflowID

from corrobo_core import Attempt, InvestigateError, Observation, SqliteLedger, Verdict, effect
from corrobo_dbos import effect_step
from tests.engines.dbos.conftest import Local
from tests.support.processes import ROOT

pytest_plugins = ["pytester"]

# -- E01: what is imported where workflows are ---------------------------------------------------------------

# No optional package, no environment, no network: what asks for one of them fails to import.
BARE = """
import importlib, importlib.abc, json, os, socket, sys

OPTIONAL = {"httpx", "opentelemetry", "psycopg", "psycopg_pool", "requests", "rich", "typer"}

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in OPTIONAL:
            raise ModuleNotFoundError(name)

def offline(*_):
    raise OSError("no network")

def problem(module):
    try:
        importlib.import_module(module)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

import dbos, temporalio.client, temporalio.contrib.pydantic, temporalio.worker  # theirs, not ours
for name in [name for name in sys.modules if name.partition(".")[0] in OPTIONAL]:
    del sys.modules[name]
sys.meta_path.insert(0, Missing())
os.environ.clear()
socket.socket.connect = socket.getaddrinfo = offline
print(json.dumps({module: problem(module) for module in sys.argv[1:]}))
"""
OURS = ["corrobo_core", "corrobo_core.gates", "corrobo_temporal", "corrobo_dbos"]


def test_e01_it_is_imported_without_optional_packages_environment_or_network() -> None:
    command = [sys.executable, "-c", BARE, *OURS, "httpx", "tests.reports.at_home"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {
        **dict.fromkeys(OURS),
        "httpx": "ModuleNotFoundError: httpx",
        "tests.reports.at_home": "KeyError: 'HOME'",
    }


# -- E05: secrets, on DBOS -----------------------------------------------------------------------------------

SECRET = "sk_live_51HxQz"


def test_e05_a_secret_in_errors_is_in_no_checkpoint_log_or_message(
    local: Local, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    @effect("reports/leaky", identity=lambda reference: reference)
    def leaky(attempt: Attempt, reference: str) -> None:
        raise TimeoutError(f"no answer with {SECRET}") from ValueError(SECRET)

    @leaky.observe
    def seen(attempt: Attempt) -> Observation[None]:
        raise ConnectionError(f"refused with {SECRET}")

    @seen.reconcile
    def judge(attempt: Attempt, found: None) -> Verdict[None]:
        raise AssertionError("there is nothing to judge")

    @DBOS.step()
    def naive_step() -> None:
        raise TimeoutError(f"no answer with {SECRET}")

    with SqliteLedger(tmp_path / "effects.db", redact=lambda text: text.replace(SECRET, "***")) as ledger:
        step = effect_step(ledger, look_again_for=timedelta())(leaky)

        @DBOS.workflow()
        def pay() -> None:
            step("rf_81")

        @DBOS.workflow()
        def pay_naively() -> None:
            naive_step()

        local.launch()
        with SetWorkflowID("guarded"), pytest.raises(InvestigateError) as told:
            pay()
        with SetWorkflowID("naive"), pytest.raises(TimeoutError):
            pay_naively()
    # DBOS stores errors in a form that hides their text from a plain search: what it gives back is looked at.
    kept = repr(DBOS.list_workflow_steps("guarded"))
    assert "***" in kept
    assert SECRET not in "".join([str(told.value), repr(told.value), kept, caplog.text, stored_in(tmp_path)])
    assert SECRET in repr(DBOS.list_workflow_steps("naive"))


def stored_in(folder: Path) -> str:
    return "".join(file.read_bytes().decode("latin-1") for file in folder.iterdir() if file.is_file())


# -- E07: tests that do not sleep ----------------------------------------------------------------------------

WITHOUT_SLEEPING = """
import time
from datetime import timedelta

import pytest
import pytest_asyncio
from temporalio.testing import ActivityEnvironment

from corrobo_core import AsyncEffectRunner, Disposition
from corrobo_core.testing import Fault, FaultKind
from corrobo_core.testing.example import AsyncRefundContract, FakePayments
from corrobo_temporal import EffectNotYetError, effect_activity


@pytest_asyncio.fixture(scope="session")
async def environment():  # as a test server would be
    return ActivityEnvironment()


@pytest.fixture
def payments(corrobo_clock):
    payments = FakePayments(corrobo_clock)
    payments.plan(Fault(FaultKind.REQUEST_LOST))
    return payments


@pytest.mark.asyncio
async def test_by_a_runner(corrobo_clock, corrobo_ledger, payments):
    began, refund = time.monotonic(), AsyncRefundContract(payments)
    runner = AsyncEffectRunner(corrobo_ledger)
    first = await runner.run(refund, *payments.intent(1))
    corrobo_clock.pass_by(first.wait)
    assert (await runner.run(refund, *payments.intent(1))).disposition is Disposition.COMPLETE
    assert (first.wait.seconds, payments.effects(), payments.writes()) == (30, 1, 2)
    assert time.monotonic() - began < 5


@pytest.mark.asyncio
async def test_by_an_activity(environment, corrobo_clock, corrobo_ledger, payments):
    began, refund = time.monotonic(), effect_activity(AsyncRefundContract(payments), corrobo_ledger)
    with pytest.raises(EffectNotYetError) as later:
        await environment.run(refund, *payments.intent(1))
    corrobo_clock.pass_by(later.value.next_retry_delay)
    await environment.run(refund, *payments.intent(1))
    assert (later.value.next_retry_delay.seconds, payments.effects(), payments.writes()) == (30, 1, 2)
    assert time.monotonic() - began < 5
"""


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_e07_a_window_passes_without_sleeping_in_either_mode_of_pytest_asyncio(
    pytester: pytest.Pytester, mode: str
) -> None:
    pytester.makepyfile(WITHOUT_SLEEPING)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", f"--asyncio-mode={mode}")
    result.assert_outcomes(passed=2)
