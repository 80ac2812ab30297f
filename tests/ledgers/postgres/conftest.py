"""Migrated PostgreSQL ledgers for the tests that ask."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from corrobo_core.ledgers.postgres import PostgresLedger
from tests.support.postgres import PostgresServer, fresh_database, running_postgres


@pytest.fixture(scope="package")
def package_dsn(postgres_admin: str) -> Iterator[str]:
    """One database for these tests; making and dropping one costs more than most of them."""
    with fresh_database(postgres_admin) as dsn:
        yield dsn


@pytest.fixture
def postgres_dsn(package_dsn: str) -> Iterator[str]:
    """That database, empty, and afterwards as it was."""
    yield package_dsn
    with psycopg.connect(package_dsn, autocommit=True, options="-c default_transaction_read_only=off") as admin:
        _empty(admin)


def _empty(admin: psycopg.Connection[tuple[Any, ...]]) -> None:
    others = "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    while admin.execute(f"select pg_terminate_backend(pid) {others}").fetchall():
        time.sleep(0.005)
    schemas = admin.execute(
        "select nspname from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'"
    ).fetchall()
    for (schema,) in schemas:
        admin.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(schema)))
    admin.execute("create schema public")
    admin.execute(sql.SQL("alter database {} reset all").format(sql.Identifier(admin.info.dbname)))


@pytest.fixture
def ledger(postgres_dsn: str) -> Iterator[PostgresLedger]:
    """A ledger in a database of its own, migrated and open."""
    with PostgresLedger(postgres_dsn) as ledger:
        ledger.migrate()
        yield ledger


@pytest.fixture
def admin(postgres_dsn: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A superuser's session in the same database, in autocommit."""
    with psycopg.connect(postgres_dsn, autocommit=True) as session:
        yield session


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server that this test may stop and start, with a migrated ledger in it."""
    with running_postgres() as server:
        PostgresLedger(server.dsn()).migrate()
        yield server
