"""The storages that every crash test runs on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.storages import Memory, Postgres, Sqlite, Storage
from tests.support.postgres import fresh_database

_schemas = (f"crash_{number}" for number in itertools.count(1))


@pytest.fixture(scope="package")
def crash_database(postgres_admin: str) -> Iterator[str]:
    """One database; each test has a schema of its own."""
    with fresh_database(postgres_admin) as dsn:
        yield dsn


@pytest.fixture
def memory_storage(monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Processes that are none, and time that tests move."""
    return Memory(monkeypatch)


@pytest.fixture
def sqlite_storage(tmp_path: Path) -> Sqlite:
    """A new file."""
    return Sqlite(tmp_path / "effects.db")


@pytest.fixture
def postgres_storage(crash_database: str) -> Postgres:
    """A new schema."""
    return Postgres(crash_database, next(_schemas))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def storage(request: pytest.FixtureRequest) -> Storage:
    """Each of them."""
    made: Storage = request.getfixturevalue(f"{request.param}_storage")
    return made
