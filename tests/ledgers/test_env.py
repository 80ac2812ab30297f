"""Which ledger an environment variable names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from corrobo_core.errors import DsnError
from corrobo_core.ledgers.env import from_env
from corrobo_core.ledgers.postgres import PostgresLedger
from corrobo_core.ledgers.sqlite import SqliteLedger

SECRET = "hunter2"


def test_three_slashes_are_relative_and_four_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for dsn in ("sqlite:///my%20effects.db", f"sqlite:///{tmp_path}/my%20effects.db"):
        monkeypatch.setenv("CORROBO_DSN", dsn)
        ledger = from_env(namespace="shop")
        assert isinstance(ledger, SqliteLedger)
        assert repr(ledger) == f"SqliteLedger({str(tmp_path / 'my effects.db')!r}, namespace='shop')"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_postgresql_is_reached_by_either_scheme(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("EFFECTS", f"{scheme}://app:{SECRET}@db.example/app")
    ledger = from_env("EFFECTS", namespace="shop")
    assert isinstance(ledger, PostgresLedger)
    assert ledger.namespace == "shop"
    assert SECRET not in repr(ledger)


@pytest.mark.parametrize(
    ("dsn", "problem"),
    [
        (None, "not set"),
        ("", "not set"),
        ("  ", "not set"),
        (SECRET, "no scheme"),
        (f"mysql://app:{SECRET}@db.example/app", "'mysql' names no ledger"),
        (f"sqlite://{SECRET}/effects.db", "three slashes"),
        (f"sqlite:///effects.db?key={SECRET}", "no parameters"),
        ("sqlite://", "names a file"),
        ("sqlite:///", "names a file"),
        ("sqlite:///:memory:", "names a file"),
        (f"postgresql://[{SECRET}", "not an address"),
    ],
)
def test_anything_else_is_refused_without_echoing_it(
    monkeypatch: pytest.MonkeyPatch, dsn: str | None, problem: str
) -> None:
    monkeypatch.delenv("CORROBO_DSN", raising=False)
    if dsn is not None:
        monkeypatch.setenv("CORROBO_DSN", dsn)
    with pytest.raises(DsnError, match=problem) as caught:
        from_env()
    assert "CORROBO_DSN" in str(caught.value)
    assert SECRET not in repr(caught.value)
    assert SECRET not in repr(caught.value.__cause__)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert not caught.value.retryable


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORROBO_DSN", f"postgresql://app:{SECRET}@db.example/app")
    monkeypatch.setitem(sys.modules, "corrobo_core.ledgers.postgres", None)
    with pytest.raises(DsnError, match=r"corrobo-core\[postgres\]"):
        from_env()
