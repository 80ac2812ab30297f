"""The conformance suite on the PostgreSQL ledger, directly and through a transaction pooler."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from corrobo_core.ledgers.postgres import PostgresLedger
from corrobo_core.testing import AnotherLedger, ManagedLedger, SharedLedgerConformance
from tests.support.pgbouncer import running_pgbouncer
from tests.support.postgres import fresh_database


@pytest.fixture(scope="module")
def database(postgres_admin: str) -> Iterator[str]:
    """One database for all these tests; each has a schema of its own."""
    with fresh_database(postgres_admin) as dsn:
        yield dsn


@pytest.fixture(scope="module")
def pooled(database: str) -> Iterator[str]:
    """The same database through PgBouncer in transaction mode."""
    with running_pgbouncer(database) as dsn:
        yield dsn


_schemas = (f'the {n}. "schema"' for n in itertools.count(1))


class TestPostgresLedger(SharedLedgerConformance):
    @pytest.fixture
    def another(self, database: str) -> AnotherLedger:
        schema = next(_schemas)
        return lambda namespace="default": PostgresLedger(database, schema=schema, namespace=namespace)

    @pytest.fixture
    def ledger(self, another: AnotherLedger) -> ManagedLedger:
        ledger = another()
        ledger.migrate()
        return ledger


class TestPostgresLedgerBehindPgBouncer(SharedLedgerConformance):
    """C7: the statements work unchanged."""

    @pytest.fixture
    def another(self, database: str, pooled: str) -> AnotherLedger:
        schema = next(_schemas)
        return lambda namespace="default": PostgresLedger(
            pooled, owner_dsn=database, schema=schema, namespace=namespace
        )

    @pytest.fixture
    def ledger(self, another: AnotherLedger) -> ManagedLedger:
        ledger = another()
        ledger.migrate()
        return ledger
