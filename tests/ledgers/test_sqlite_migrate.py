"""Migrations of the SQLite ledger, and what it says where they are missing (C12)."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
import time
from contextlib import closing
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from corrobo_core.commands import LedgerCommand, Load, Open
from corrobo_core.errors import LedgerError, LedgerNotMigratedError, LedgerTooNewError
from corrobo_core.ledgers import _sqlite_migrate
from corrobo_core.ledgers._shared import migrations
from corrobo_core.ledgers._sqlite_file import SqliteFile
from corrobo_core.ledgers.sqlite import SqliteLedger
from corrobo_core.testing._operations import reserving, unsent

PROCESSES = 8


def _naive_migrate(file: SqliteFile) -> None:
    """Looks first, then makes; no transaction around both."""
    with closing(file.open("rwc")) as connection:
        if file.schema(connection) is None:
            time.sleep(0.05)  # a context switch
            steps = migrations("sqlite")
            for step in steps:
                for statement in _sqlite_migrate._statements(step.sql):
                    connection.execute(statement)
            connection.execute("insert into corrobo_ledger values (1, ?, hex(randomblob(16)), '')", (len(steps),))


def _migrate_together(folder: str, rounds: int, barrier: Barrier, naive: bool, said: Any) -> None:
    if naive:
        _sqlite_migrate._migrate = _naive_migrate
    for n in range(rounds):
        barrier.wait(30)
        try:
            with SqliteLedger(f"{folder}/{n}.db") as ledger:
                ledger.migrate()
                mine = ledger.perform(Open(reserving(unsent("the one")))).mine
                said.put((n, mine, ledger.idempotency_key(unsent("the one").key)))
        except Exception as error:
            said.put((n, False, repr(error)))


def _together(folder: Path, rounds: int, *, naive: bool = False) -> list[tuple[int, set[str]]]:
    """For each round: how many processes inserted the operation, and the idempotency keys they made."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    barrier, said = context.Barrier(PROCESSES), context.Queue()
    given = (str(folder), rounds, barrier, naive, said)
    processes = [context.Process(target=_migrate_together, args=given) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    heard = [said.get(timeout=60) for _ in range(PROCESSES * rounds)]
    for process in processes:
        process.join()
        process.close()
    said.close()
    said.join_thread()
    by_round = [[entry for entry in heard if entry[0] == n] for n in range(rounds)]
    return [(sum(mine for _, mine, _ in entries), {key for _, _, key in entries}) for entries in by_round]


def test_eight_processes_migrate_an_empty_ledger_at_once(tmp_path: Path) -> None:
    for inserted, keys in _together(tmp_path, 50):
        assert inserted == 1
        assert len(keys) == 1, keys


def test_the_naive_twin_of_migrate_fails_at_once(tmp_path: Path) -> None:
    rounds = _together(tmp_path, 3, naive=True)
    assert any("already exists" in key for _, keys in rounds for key in keys)


def test_migrating_waits_also_for_the_lock_that_sqlite_does_not_wait_for(tmp_path: Path) -> None:
    """Entering WAL mode needs the file for oneself; the twin, without patience, fails at once."""
    path = tmp_path / "application.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as writer:
        writer.execute("begin immediate")
        begun = time.monotonic()
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            _sqlite_migrate._migrate(SqliteFile(path, "FULL", 5))
        assert time.monotonic() - begun < 2
        end = threading.Timer(0.2, lambda: writer.execute("commit"))
        end.start()
        SqliteLedger(path).migrate()
        end.join()
    with SqliteLedger(path) as ledger:
        assert ledger.perform(Open(unsent())).mine


@pytest.mark.parametrize("there", [False, True], ids=["no-file", "empty-file"])
def test_a_ledger_that_was_never_migrated_says_so_and_stays_as_it_is(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "effects.db"
    if there:
        sqlite3.connect(path).close()
        path.touch()
    with SqliteLedger(path) as ledger:
        commands: list[LedgerCommand[Any]] = [Open(reserving(unsent())), Load(unsent().key)]
        for command in commands:
            with pytest.raises(LedgerNotMigratedError, match=r"ledger\.migrate\(\)") as caught:
                ledger.perform(command)
            assert not caught.value.retryable
    assert path.exists() is there
    assert not path.with_name("effects.db-owners").exists()


def test_migrating_leaves_other_tables_alone(tmp_path: Path) -> None:
    path = tmp_path / "application.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table orders (id integer)")
        connection.execute("insert into orders values (1)")
        connection.commit()
    with SqliteLedger(path) as ledger:
        ledger.migrate()
        ledger.migrate()
        assert ledger.perform(Open(unsent())).mine
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select * from orders").fetchall() == [(1,)]


def test_a_schema_of_another_release_is_refused(sqlite_ledger: SqliteLedger, sqlite_path: Path) -> None:
    sqlite_ledger.close()
    for version, expected in ((99, LedgerTooNewError), (0, LedgerNotMigratedError)):
        with closing(sqlite3.connect(sqlite_path)) as connection:
            connection.execute("update corrobo_ledger set version = ?", (version,))
            connection.commit()
        with pytest.raises(expected, match=f"version {version}"):
            sqlite_ledger.perform(Load(unsent().key))
    with closing(sqlite3.connect(sqlite_path)) as connection:
        connection.execute("update corrobo_ledger set version = 99")
        connection.commit()
    with pytest.raises(LedgerTooNewError, match="Upgrade"):
        sqlite_ledger.migrate()


def test_a_failed_step_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "effects.db"
    *steps, last = migrations("sqlite")
    broken = (*steps, last._replace(sql=last.sql + "create table corrobo_operation (twice text);"))
    with monkeypatch.context() as patched:
        patched.setattr(_sqlite_migrate, "migrations", lambda dialect: broken)
        with pytest.raises(LedgerError, match="already exists"):
            SqliteLedger(path).migrate()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select name from sqlite_master").fetchall() == []
    with SqliteLedger(path) as ledger:
        ledger.migrate()
        assert ledger.perform(Open(unsent())).mine


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "effects.db"
    path.write_text("these are not the bytes of a database " * 100)
    for refused in (SqliteLedger(path).migrate, lambda: SqliteLedger(path).perform(Load(unsent().key))):
        with pytest.raises(LedgerError, match="not a database") as caught:
            refused()
        assert not caught.value.retryable


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="Look at the path") as caught:
        SqliteLedger(tmp_path / "missing" / "effects.db").migrate()
    assert not caught.value.retryable
