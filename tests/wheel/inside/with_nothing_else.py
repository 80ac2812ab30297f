"""Run by pytest in an environment that holds the wheel and pytest alone, no extra, outside of the source tree."""

import importlib
import pkgutil
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import pytest

import corrobo_core
import pytest_corrobo
from corrobo_core.testing import ContractSuite
from corrobo_core.testing.example import FakePayments, RefundContract

PACKAGES = {"corrobo_core", "corrobo_temporal", "corrobo_dbos", "pytest_corrobo"}
HERE = Path(__file__).parent


def test_it_is_the_installed_one() -> None:
    for package in (corrobo_core, pytest_corrobo):
        assert Path(package.__file__ or "").is_relative_to(sys.prefix)


def test_each_package_says_that_it_is_typed_and_nothing_else_is_in_the_wheel() -> None:
    names = {str(path) for path in files("corrobo-core") or []}
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == PACKAGES


def test_without_extras_all_of_the_core_is_there_but_what_a_driver_is_for() -> None:
    missing = {}
    for module in pkgutil.walk_packages(corrobo_core.__path__, "corrobo_core."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            missing[module.name] = error.name
    assert set(missing.values()) <= {"psycopg", "psycopg_pool", "rich", "typer"}, missing
    assert "corrobo_core.ledgers.postgres" in missing  # else an extra is installed, and this proves nothing


def test_the_quickstart_makes_one_refund() -> None:
    done = subprocess.run([sys.executable, "quickstart.py"], cwd=HERE, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "refunds at the provider: 1"


class TestRefund(ContractSuite):
    """The plugin was found by its entry point: its summary is looked for by whoever runs this."""

    @pytest.fixture
    def target(self) -> FakePayments:
        return FakePayments()

    @pytest.fixture
    def contract(self, target: FakePayments) -> RefundContract:
        return RefundContract(target)
