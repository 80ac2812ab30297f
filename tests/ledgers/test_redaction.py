"""Every durable ledger takes a `redact` hook, and stores no text of an exception that it has not seen (T3)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg

from corrobo_core import Attempt, EffectRunner, Observation, PostgresLedger, SqliteLedger, Verdict, effect

SECRET = "sk_live_51"


@effect("tests/leaky", identity=lambda reference: reference)
def leaky(attempt: Attempt, reference: str) -> None:
    raise TimeoutError(f"no answer with key {SECRET}")


@leaky.observe
def seen(attempt: Attempt) -> Observation[None]:
    raise ConnectionError(f"refused with key {SECRET}")


@seen.reconcile
def judge(attempt: Attempt, found: None) -> Verdict[None]:
    raise AssertionError("there is nothing to judge")


def redact(text: str) -> str:
    return text.replace(SECRET, "***")


def stored_by_sqlite(path: Path) -> str:
    connection = sqlite3.connect(path)
    try:
        (document,) = connection.execute("select doc from corrobo_operation").fetchone()
    finally:
        connection.close()
    return str(document)


def stored_by_postgres(dsn: str) -> str:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("select doc::text from corrobo.operation").fetchone()
    assert row is not None
    return str(row[0])


def test_sqlite(tmp_path: Path) -> None:
    plain, path = tmp_path / "plain.db", tmp_path / "redacted.db"
    for ledger in SqliteLedger(plain), SqliteLedger(path, redact=redact):
        with ledger:
            ledger.migrate()
            EffectRunner(ledger).run(leaky, "rf_1")
    assert stored_by_sqlite(plain).count(SECRET) == 3  # the attempt's failure, the look's explanation, the reason
    assert SECRET not in stored_by_sqlite(path)
    assert "***" in stored_by_sqlite(path)


def test_postgres(postgres_dsn: str) -> None:
    with PostgresLedger(postgres_dsn, redact=redact) as ledger:
        ledger.migrate()
        EffectRunner(ledger).run(leaky, "rf_1")
    assert SECRET not in stored_by_postgres(postgres_dsn)
    assert "***" in stored_by_postgres(postgres_dsn)
