"""Real servers for every test that asks for one. A server that does not start is a failure, never a skip."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from temporalio.client import Client

from examples.http_ledger import HttpLedger, running_http_ledger
from tests.support.pgbouncer import running_pgbouncer
from tests.support.postgres import fresh_database, postgres_admin_dsn
from tests.support.temporal import running_temporal


@pytest.fixture(scope="session")
def postgres_admin() -> Iterator[str]:
    """The URL of the PostgreSQL server that the tests of this process share."""
    with postgres_admin_dsn() as dsn:
        yield dsn


@pytest.fixture
def postgres_dsn(postgres_admin: str) -> Iterator[str]:
    """The URL of a new, empty database."""
    with fresh_database(postgres_admin) as dsn:
        yield dsn


@pytest.fixture
def pgbouncer_dsn(postgres_dsn: str) -> Iterator[str]:
    """The URL of the same database as ``postgres_dsn``, through PgBouncer in transaction mode."""
    with running_pgbouncer(postgres_dsn) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def temporal_address() -> Iterator[str]:
    """The host:port of the Temporal server that the tests of this process share."""
    with running_temporal() as address:
        yield address


@pytest.fixture
async def temporal_client(temporal_address: str) -> Client:
    """A client of that server, made on this test's event loop."""
    return await Client.connect(temporal_address)


@pytest.fixture
def http_ledger() -> Iterator[HttpLedger]:
    """A new HTTP ledger in its own process."""
    with running_http_ledger() as ledger:
        yield ledger
