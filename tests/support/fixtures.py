"""Fixtures for tests of effects: each ledger in turn, and one HTTP ledger. Import them in a conftest."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.http_ledger import HttpLedger, running_http_ledger
from tests.support.ledgers import AnyLedger, ledger_at
from tests.support.postgres import fresh_database

__all__ = [
    "any_ledger",
    "http_ledger",
    "ledger_address",
    "postgres_address",
    "reference",
    "shared_http_ledger",
    "shared_postgres_ledger",
]


@pytest.fixture(scope="session")
def shared_http_ledger() -> Iterator[HttpLedger]:
    """One HTTP ledger for many tests."""
    with running_http_ledger() as ledger:
        yield ledger


@pytest.fixture
def http_ledger(shared_http_ledger: HttpLedger) -> Iterator[HttpLedger]:
    """The shared HTTP ledger without faults; each test has a `reference` of its own to count by."""
    yield shared_http_ledger
    shared_http_ledger.heal()


@pytest.fixture
def reference() -> str:
    """A reference that no other test uses."""
    return f"rf_{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def shared_postgres_ledger(postgres_admin: str) -> Iterator[str]:
    """A migrated ledger; each test has a namespace of its own in it."""
    with fresh_database(postgres_admin) as dsn:
        ledger_at(dsn).migrate()
        yield dsn


def _address(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    match kind:
        case "memory":
            return "memory:"
        case "sqlite":
            address = f"sqlite://{folder / 'effects.db'}"
            ledger_at(address).migrate()
            return address
        case _:
            shared: str = request.getfixturevalue("shared_postgres_ledger")
            return f"{shared}#{uuid.uuid4().hex}"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def any_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyLedger]:
    """Each ledger in turn: open, migrated and empty."""
    with ledger_at(_address(request.param, request, tmp_path)) as ledger:
        yield ledger


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of each ledger that several processes can share: migrated and empty."""
    return _address(request.param, request, tmp_path)


@pytest.fixture
def postgres_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of the PostgreSQL ledger: migrated and empty."""
    return _address("postgres", request, tmp_path)
