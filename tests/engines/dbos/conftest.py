"""Where DBOS and the ledger keep their data, for processes that come and go."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from examples.http_ledger import HttpLedger
from tests.support.processes import Child, child


@dataclass(frozen=True)
class World:
    """What outlives a worker.

    Attributes:
        http: the outside system.
        ledger_dsn: the effect ledger.
        system_database: DBOS's own database.
    """

    http: HttpLedger
    ledger_dsn: str
    system_database: str

    def worker(self, *arguments: str) -> AbstractContextManager[Child]:
        """A process running `tests.engines.dbos.app`."""
        env = {
            "CORROBO_DSN": self.ledger_dsn,
            "SYSTEM_DATABASE": self.system_database,
            "HTTP_LEDGER": self.http.url,
        }
        return child("tests.engines.dbos.app", *arguments, env=env)


def migrated(dsn: str) -> str:
    """The same address, with the ledger's tables there."""
    if dsn.startswith("sqlite:///"):
        from corrobo_core.ledgers.sqlite import SqliteLedger

        with SqliteLedger(dsn.removeprefix("sqlite:///")) as ledger:
            ledger.migrate()
    else:
        from corrobo_core.ledgers.postgres import PostgresLedger

        with PostgresLedger(dsn) as ledger:
            ledger.migrate()
    return dsn


@pytest.fixture(params=["sqlite", "postgres"])
def world(request: pytest.FixtureRequest, tmp_path: Path, http_ledger: HttpLedger) -> World:
    """Everything on SQLite, or everything on PostgreSQL."""
    if request.param == "sqlite":
        return World(http_ledger, migrated(f"sqlite:///{tmp_path / 'effects.db'}"), str(tmp_path / "dbos.db"))
    dsn: str = request.getfixturevalue("postgres_dsn")
    return World(http_ledger, migrated(dsn), dsn)
