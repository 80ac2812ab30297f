"""The three ledgers as two processes use them, on one virtual time; each process can be killed.

PostgreSQL runs in a database of its own whose search path puts a schema before ``pg_catalog``. In it is a
``clock_timestamp()`` that reads a table of one row. Nothing of the ledger is changed for that: its statements name
the function as they always do. Only ``decide`` fixes its own search path, and is told the other one.

Every schema is made by the oldest step first, then brought to this release.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any, Protocol
from unittest.mock import patch

import psycopg
from psycopg import sql

from corrobo_core import MemoryLedger
from corrobo_core.ledgers import _pg_migrate, _sqlite_migrate
from corrobo_core.ledgers._shared import migrations
from corrobo_core.ledgers.document import from_row
from corrobo_core.ledgers.ports import Ledger
from corrobo_core.ledgers.postgres import PostgresLedger
from corrobo_core.ledgers.sqlite import SqliteLedger
from corrobo_core.records import JSON
from tests.model.machine.old_rows import OldRow
from tests.model.machine.times import Time, virtual
from tests.support.postgres import fresh_database

PROCESSES = 2
_SCHEMA = "effects"
_CLOCK = (
    "create function model_time.clock_timestamp() returns timestamptz volatile language sql"
    " as 'select now from model_time.clock'"
)
_COLUMNS = ("ns", "id", "type", "fp", "intent", "version", "owner", "nonce", "started", "doc")


class Store(Protocol):
    """One storage, and the ledgers of its processes.

    Attributes:
        name: for messages.
        keys: the operation of each idempotency key that was handed out (I5).
    """

    name: str
    keys: dict[str, str]

    def ledger(self, process: int) -> Ledger:
        """The ledger of that process, opened when it is first asked for."""
        ...

    def kill(self, process: int, nonces: list[str]) -> None:
        """That process is dead, and everybody can tell; it starts anew when it is asked for again."""
        ...

    def tell_time(self) -> None:
        """Called before each statement."""
        ...

    def put(self, row: OldRow) -> None:
        """Store a row as an older release wrote it."""
        ...

    def late(self, operation_id: str) -> list[JSON]:
        """What was kept of passes that had lost the operation."""
        ...

    def close(self) -> None: ...


class InMemory:
    """All processes share one object: who has died is taken out of its registry."""

    name = "memory"

    def __init__(self, time: Time) -> None:
        self._ledger = MemoryLedger(clock=time.now)
        self.keys: dict[str, str] = {}

    def ledger(self, process: int) -> Ledger:
        return self._ledger

    def kill(self, process: int, nonces: list[str]) -> None:
        for nonce in nonces:
            self._ledger.pass_ended(nonce)

    def tell_time(self) -> None:
        pass

    def put(self, row: OldRow) -> None:
        operation = from_row(ledger="memory", **row.fields())
        self._ledger._rows[row.namespace, row.operation_id] = operation

    def late(self, operation_id: str) -> list[JSON]:
        kept = [each.evidence for each in self._ledger.late if each.key.operation_id == operation_id]
        return [each for n, each in enumerate(kept) if each not in kept[:n]]

    def close(self) -> None:
        self._ledger.close()


class _Processes:
    """A ledger object for each process."""

    name: str

    def __init__(self) -> None:
        self._open: dict[int, Any] = {}
        self.keys: dict[str, str] = {}

    def _new(self) -> Any:
        raise NotImplementedError

    def ledger(self, process: int) -> Ledger:
        if process not in self._open:
            self._open[process] = self._new().__enter__()
        ledger: Ledger = self._open[process]
        return ledger

    def kill(self, process: int, nonces: list[str]) -> None:
        dead = self._open.pop(process, None)
        if dead is not None:
            dead.close()

    def close(self) -> None:
        for process in list(self._open):
            self.kill(process, [])


class InSqlite(_Processes):
    """One file. It need not survive a power failure, so that a step costs no sync."""

    name = "SQLite"

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        with patch.object(_sqlite_migrate, "migrations", lambda dialect: migrations(dialect)[:1]):
            self._migrate()
        self._migrate()
        self._connection = sqlite3.connect(path, isolation_level=None)

    def _migrate(self) -> None:
        self._new().migrate()

    def _new(self) -> SqliteLedger:
        return SqliteLedger(self._path, synchronous="OFF", accept_duplicates_after_crash=True)

    def tell_time(self) -> None:
        pass

    def put(self, row: OldRow) -> None:
        holes = ", ".join("?" * len(_COLUMNS))
        statement = f"insert into corrobo_operation ({', '.join(_COLUMNS)}) values ({holes})"
        self._connection.execute(statement, row.columns())

    def late(self, operation_id: str) -> list[JSON]:
        query = "select evidence from corrobo_late_evidence where id = ? order by seq"
        return [json.loads(text) for (text,) in self._connection.execute(query, (operation_id,))]

    def close(self) -> None:
        super().close()
        self._connection.close()


class InPostgres(_Processes):
    """One schema, in a database whose clock is a table.

    Args:
        dsn: of an empty database.
        time: what its clock shows.
    """

    name = "PostgreSQL"

    def __init__(self, dsn: str, time: Time) -> None:
        super().__init__()
        self._dsn, self._time = dsn, time
        self._admin = psycopg.connect(dsn, autocommit=True)
        self._told: tuple[float, float] | None = None
        self._make_clock()
        with patch.object(_pg_migrate, "migrations", lambda dialect: migrations(dialect)[:1]):
            self._new().migrate()
        self._new().migrate()
        decide = "text, text, text, text, text, timestamptz, timestamptz, text, text, json"
        path = "model_time, pg_catalog, pg_temp"
        self._admin.execute(f"alter function {_SCHEMA}.decide({decide}) set search_path = {path}".encode())

    def _make_clock(self) -> None:
        name = sql.Identifier(self._admin.info.dbname)
        for text in (
            "create schema model_time",
            "create table model_time.clock (now timestamptz not null)",
            "insert into model_time.clock values ('2026-01-01 00:00:00+00')",
            _CLOCK,
            "alter database {} set search_path = model_time, pg_catalog",
            "alter database {} set synchronous_commit = off",
        ):
            self._admin.execute(sql.SQL(text).format(name) if "{}" in text else text.encode())

    def _new(self) -> PostgresLedger:
        return PostgresLedger(self._dsn, schema=_SCHEMA, pool_size=4, accept_duplicates_after_crash=True)

    def tell_time(self) -> None:
        if self._told != self._time.mark:
            self._admin.execute("update model_time.clock set now = %s", (self._time.now(),))
            self._told = self._time.mark

    def kill(self, process: int, nonces: list[str]) -> None:
        super().kill(process, nonces)
        locks = "select count(*) from pg_locks where locktype = 'advisory' and database = "
        locks += "(select oid from pg_database where datname = current_database())"
        while self._admin.execute(locks.encode()).fetchone() != (len(self._open),):
            sleep(0.001)  # the server notices in a moment

    def put(self, row: OldRow) -> None:
        holes = ", ".join(["%s"] * len(_COLUMNS))
        statement = f"insert into {_SCHEMA}.operation ({', '.join(_COLUMNS)}) values ({holes})"
        self._admin.execute(statement.encode(), row.columns())

    def late(self, operation_id: str) -> list[JSON]:
        query = f"select evidence from {_SCHEMA}.late_evidence where id = %s order by seq"
        return [evidence for (evidence,) in self._admin.execute(query.encode(), (operation_id,))]

    def close(self) -> None:
        super().close()
        self._admin.close()


@contextmanager
def stores(time: Time, postgres_admin: str | None = None) -> Iterator[list[Store]]:
    """Memory and SQLite, and PostgreSQL where a server is given, all on this time."""
    with virtual(time), TemporaryDirectory() as folder:
        opened: list[Store] = [InMemory(time), InSqlite(Path(folder) / "effects.db")]
        try:
            if postgres_admin is None:
                yield opened
                return
            with fresh_database(postgres_admin) as dsn:
                opened.append(InPostgres(dsn, time))
                try:
                    yield opened
                finally:
                    opened.pop().close()
        finally:
            for store in opened:
                store.close()
