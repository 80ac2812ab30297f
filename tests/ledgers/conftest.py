"""One migrated SQLite ledger for each test that asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from corrobo_core.ledgers.sqlite import SqliteLedger


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    """Where ``sqlite_ledger`` keeps its operations."""
    return tmp_path / "effects.db"


@pytest.fixture
def sqlite_ledger(sqlite_path: Path) -> Iterator[SqliteLedger]:
    """A ledger that is migrated and open."""
    with SqliteLedger(sqlite_path) as ledger:
        ledger.migrate()
        yield ledger
