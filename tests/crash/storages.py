"""The ledgers, each as several processes use it: every process has its own, on the same storage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import pytest

from corrobo_core import MemoryLedger, attempt, hooks
from corrobo_core.ledgers import memory
from corrobo_core.ledgers.ports import Ledger
from corrobo_core.ledgers.postgres import PostgresLedger
from corrobo_core.ledgers.sqlite import SqliteLedger
from tests.crash.process import Process


class Storage(Protocol):
    """One storage, and its time.

    Attributes:
        window: a window that a pass fits in easily, in seconds.
    """

    window: float

    def open(self) -> Ledger:
        """The ledger of a new process."""
        ...

    def close(self, ledger: Ledger, process: Process | None = None) -> None:
        """That process is no more, and everybody can tell."""
        ...

    def now(self) -> float: ...
    def wait(self, seconds: float) -> None: ...


class Memory:
    """All processes are in this one; whoever ended is taken out of its registry. Time is moved by hand."""

    window = 10.0

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._time = 0.0
        for module in (attempt, hooks, memory):
            patch.setattr(module, "stopwatch", self.now)
        self.ledger = MemoryLedger(clock=lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._time))

    def open(self) -> Ledger:
        return self.ledger

    def close(self, ledger: Ledger, process: Process | None = None) -> None:
        for nonce in process.nonces if process else ():
            self.ledger.pass_ended(nonce)

    def now(self) -> float:
        return self._time

    def wait(self, seconds: float) -> None:
        self._time += seconds


class Sqlite:
    """One file; each process holds a lock of its own."""

    window = 0.4

    def __init__(self, path: Path) -> None:
        self._path = path
        ledger = SqliteLedger(path)
        ledger.migrate()
        ledger.close()

    def open(self) -> Ledger:
        return SqliteLedger(self._path)

    def close(self, ledger: Ledger, process: Process | None = None) -> None:
        assert isinstance(ledger, SqliteLedger)
        ledger.close()

    def now(self) -> float:
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


class Postgres:
    """One schema; each process holds a session lock of its own."""

    window = 0.4

    def __init__(self, dsn: str, schema: str) -> None:
        self._dsn, self._schema = dsn, schema
        with PostgresLedger(dsn, schema=schema) as ledger:
            ledger.migrate()

    def open(self) -> Ledger:
        return PostgresLedger(self._dsn, schema=self._schema)

    def close(self, ledger: Ledger, process: Process | None = None) -> None:
        assert isinstance(ledger, PostgresLedger)
        ledger.close()

    def now(self) -> float:
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


@contextmanager
def opened(storage: Storage) -> Iterator[Ledger]:
    """A process's ledger, closed when that process has ended as it should."""
    ledger = storage.open()
    try:
        yield ledger
    finally:
        storage.close(ledger)
