"""The conformance suite on every ledger of this library."""

from __future__ import annotations

from pathlib import Path

import pytest

from corrobo_core.ledgers.memory import MemoryLedger
from corrobo_core.ledgers.sqlite import SqliteLedger
from corrobo_core.testing import AnotherLedger, LedgerConformance, ManagedLedger, SharedLedgerConformance


class TestMemoryLedger(LedgerConformance):
    @pytest.fixture
    def ledger(self) -> ManagedLedger:
        return MemoryLedger()


class TestSqliteLedger(SharedLedgerConformance):
    @pytest.fixture
    def another(self, tmp_path: Path) -> AnotherLedger:
        return lambda namespace="default": SqliteLedger(tmp_path / "effects.db", namespace=namespace)

    @pytest.fixture
    def ledger(self, another: AnotherLedger) -> ManagedLedger:
        ledger = another()
        ledger.migrate()
        return ledger
