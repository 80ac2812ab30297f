"""Where DBOS and the ledger keep their data, for processes that come and go."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from dbos import DBOS, DBOSClient, Serializer

from corrobo_core.commands import Load
from corrobo_core.ledgers.postgres import PostgresLedger
from corrobo_core.ledgers.sqlite import SqliteLedger
from corrobo_core.records import Operation, OperationKey
from examples.http_ledger import HttpLedger
from tests.support.dbos import dbos_config
from tests.support.processes import Child, child


@dataclass(frozen=True)
class World:
    """What outlives a worker.

    Attributes:
        http: the outside system.
        ledger_dsn: the effect ledger.
        system_database: DBOS's own database.
    """

    http: HttpLedger
    ledger_dsn: str
    system_database: str

    def worker(self, *arguments: str) -> AbstractContextManager[Child]:
        """A process running `tests.engines.dbos.app`."""
        env = {
            "CORROBO_DSN": self.ledger_dsn,
            "SYSTEM_DATABASE": self.system_database,
            "HTTP_LEDGER": self.http.url,
        }
        return child("tests.engines.dbos.app", *arguments, env=env)

    @contextmanager
    def spare(self, *workflows: str) -> Iterator[Spare]:
        """A worker that has everything imported and waits for its turn to recover these workflows."""
        with TemporaryDirectory() as folder, self.worker("spare", f"{folder}/go", *workflows) as waiting:
            yield Spare(waiting, Path(folder, "go"))

    def open_ledger(self) -> SqliteLedger | PostgresLedger:
        """The effect ledger."""
        if self.ledger_dsn.startswith("sqlite:///"):
            return SqliteLedger(self.ledger_dsn.removeprefix("sqlite:///"))
        return PostgresLedger(self.ledger_dsn)

    def operation(self, type_: str, operation_id: str) -> Operation:
        """One record of the effect ledger."""
        with self.open_ledger() as ledger:
            found = ledger.perform(Load(OperationKey("default", operation_id, type_))).operation
        assert found is not None
        return found

    @contextmanager
    def client(self) -> Iterator[DBOSClient]:
        """A client of DBOS's database, for processes without DBOS."""
        url = self.system_database
        client = DBOSClient(system_database_url=url if "://" in url else f"sqlite:///{url}")
        try:
            yield client
        finally:
            client.destroy()

    def wait_for_step(self, workflow_id: str, step_id: int, timeout: float = 30.0) -> None:
        """Wait until DBOS has checkpointed a step."""
        with self.client() as client:
            wait_until(
                lambda: any(step["function_id"] == step_id for step in client.list_workflow_steps(workflow_id)),
                timeout,
            )


@dataclass(frozen=True)
class Spare:
    """A worker that waits for its turn."""

    child: Child
    go: Path

    def launch(self) -> Child:
        """Let it launch DBOS now."""
        self.go.touch()
        return self.child


def wait_until(condition: Callable[[], bool], timeout: float = 10.0) -> None:
    """Poll.

    Raises:
        TimeoutError: it did not hold within ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the condition did not come to hold")
        time.sleep(0.02)


@pytest.fixture(params=["sqlite", "postgres"])
def world(request: pytest.FixtureRequest, tmp_path: Path, http_ledger: HttpLedger) -> World:
    """Everything on SQLite, or everything on PostgreSQL."""
    if request.param == "sqlite":
        made = World(http_ledger, f"sqlite:///{tmp_path / 'effects.db'}", str(tmp_path / "dbos.db"))
    else:
        dsn: str = request.getfixturevalue("postgres_dsn")
        made = World(http_ledger, dsn, dsn)
    with made.open_ledger() as ledger:
        ledger.migrate()
    return made


@dataclass(frozen=True)
class Here:
    """DBOS, the ledger and the outside system of one test, all reached from this process.

    Attributes:
        http: the outside system.
        ledger: the effect ledger, migrated.
        path: of DBOS's database, or its URL, for another launch.
    """

    http: HttpLedger
    ledger: SqliteLedger | PostgresLedger
    path: Path | str

    def launch(self, serializer: Serializer | None = None) -> None:
        """Launch DBOS, after the workflows were registered."""
        config = dbos_config(self.path)
        config["serializer"] = serializer
        DBOS(config=config)
        DBOS.launch()

    def steps(self, workflow_id: str) -> list[tuple[int, str]]:
        """Ids and names of the checkpointed steps."""
        return [(step["function_id"], step["function_name"]) for step in DBOS.list_workflow_steps(workflow_id)]


@dataclass(frozen=True)
class Local(Here):
    """The same, on SQLite."""

    ledger: SqliteLedger


@pytest.fixture
def local(tmp_path: Path, http_ledger: HttpLedger) -> Iterator[Local]:
    """A registry of its own and an SQLite database; the test launches DBOS."""
    DBOS.destroy(destroy_registry=True)
    with SqliteLedger(tmp_path / "effects.db") as ledger:
        ledger.migrate()
        try:
            yield Local(http_ledger, ledger, tmp_path / "dbos.db")
        finally:
            DBOS.destroy(destroy_registry=True)


@pytest.fixture
def here(world: World) -> Iterator[Here]:
    """Likewise, on SQLite and on PostgreSQL."""
    DBOS.destroy(destroy_registry=True)
    database = world.system_database
    with world.open_ledger() as ledger:
        try:
            yield Here(world.http, ledger, database if "://" in database else Path(database))
        finally:
            DBOS.destroy(destroy_registry=True)
