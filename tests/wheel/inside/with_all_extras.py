"""Run by pytest in an environment that holds the wheel, its extras and pytest alone, outside of the source tree."""

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from corrobo_core import Disposition, EffectRunner
from corrobo_core.ledgers.postgres import PostgresLedger
from corrobo_core.testing.example import FakePayments, RefundContract

HERE = Path(__file__).parent
DRIVERS_AND_ENGINES = ["psycopg", "sqlalchemy", "temporalio", "dbos", "opentelemetry", "typer", "rich", "pytest"]


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("package", ["corrobo_core", "corrobo_temporal", "corrobo_dbos", "pytest_corrobo"])
def test_everything_can_be_imported(package: str) -> None:
    found = importlib.import_module(package)
    assert Path(found.__file__ or "").is_relative_to(sys.prefix)
    for module in pkgutil.walk_packages(found.__path__, f"{package}."):
        importlib.import_module(module.name)


def test_the_core_imports_neither_drivers_nor_engines_though_they_are_there() -> None:
    assert all(importlib.util.find_spec(name) for name in DRIVERS_AND_ENGINES)
    code = f"import sys, corrobo_core, corrobo_core.gates; print(sys.modules.keys() & {set(DRIVERS_AND_ENGINES)})"
    assert run("-c", code) == "set()\n"


def test_a_refund_on_postgresql() -> None:
    payments = FakePayments()
    with PostgresLedger(os.environ["WHEEL_POSTGRES_DSN"]) as ledger:
        ledger.migrate()
        for _ in range(2):
            result = EffectRunner(ledger).run(RefundContract(payments), *payments.intent(1))
            assert result.disposition is Disposition.COMPLETE
    assert payments.effects() == 1


@pytest.mark.parametrize("program", ["temporal_readme.py", "dbos_readme.py"])
def test_the_first_program_of_an_integrations_readme(program: str) -> None:
    assert "refunded 5000" in run(program)
