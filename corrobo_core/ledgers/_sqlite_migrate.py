"""Brings an SQLite file to this release's schema (C12)."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator

from corrobo_core.ledgers._shared import migrations
from corrobo_core.ledgers._sqlite_file import SqliteFile

__all__ = ["migrate"]


def migrate(file: SqliteFile) -> None:
    """Apply the missing steps, all in one transaction.

    Raises:
        LedgerUnavailable: another process kept the file locked. Retryable.
        LedgerTooNewError: the file is ahead of this release. Not retryable.
    """
    try:
        file.patiently(lambda: _migrate(file))
    except sqlite3.Error as error:
        raise file.named(error) from error


def _migrate(file: SqliteFile) -> None:
    connection = file.open("rwc")
    try:
        file.enter_wal(connection)
        connection.execute("begin immediate")
        version, ledger_id = file.schema(connection) or (0, secrets.token_hex(16))
        file.refuse_newer(version)
        missing = migrations("sqlite")[version:]
        for step in missing:
            for statement in _statements(step.sql):
                connection.execute(statement)
        if missing:
            connection.execute(
                "insert into corrobo_ledger (one, version, id, migrated) values (1, ?, ?, corrobo_now())"
                " on conflict (one) do update set version = excluded.version, migrated = excluded.migrated",
                (missing[-1].number, ledger_id),
            )
        connection.execute("commit")
    finally:
        connection.close()  # without a commit: rolls back


def _statements(script: str) -> Iterator[str]:
    """One at a time: ``executescript`` would commit what is open first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
