from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import pytest

from corrobo_core.gates import AsyncStoredGateClient, GateClient, Gates, StoredGateClient
from corrobo_core.gates.approvals import RunPlan
from corrobo_core.ledgers.ports import Ledger
from tests.gates.support import Blocking, Clock, Turned
from tests.support.fixtures import shared_postgres_ledger
from tests.support.ledgers import ledger_at

__all__ = ["shared_postgres_ledger"]

STORES = ["memory-ledger", "sqlite", "postgres"]


class Store(NamedTuple):
    """One place where gates are kept.

    Attributes:
        clock: turn it to let time pass.
        client: makes a client of the same gates; each call is another process's, as far as state goes.
    """

    clock: Clock | Turned
    client: Callable[..., Gates]


@pytest.fixture(scope="session")
def sqlite_address(tmp_path_factory: pytest.TempPathFactory) -> str:
    address = f"sqlite://{tmp_path_factory.mktemp('gates') / 'gates.db'}"
    ledger_at(address).migrate()
    return address


class Opened:
    """The ledgers of this process's tests, each opened once: opening one costs more than most tests do."""

    def __init__(self, addresses: dict[str, Callable[[], str]]) -> None:
        self._addresses = addresses
        self._ledgers: dict[str, Any] = {}
        self.runner = asyncio.Runner()

    def sync(self, kind: str) -> Any:
        if kind not in self._ledgers:
            self._ledgers[kind] = ledger_at(self._addresses[kind]()).__enter__()
        return self._ledgers[kind]

    def asynchronous(self, kind: str) -> Any:
        """Opened on the runner's loop."""
        name = f"{kind}-async"
        if name not in self._ledgers:
            ledger = ledger_at(self._addresses[kind]())
            self._ledgers[name] = self.runner.run(ledger.__aenter__())
        return self._ledgers[name]

    def close(self) -> None:
        for name, ledger in self._ledgers.items():
            if name.endswith("-async"):
                self.runner.run(ledger.__aexit__(None, None, None))
            else:
                ledger.__exit__(None, None, None)
        self.runner.close()


@pytest.fixture(scope="session")
def opened(request: pytest.FixtureRequest) -> Iterator[Opened]:
    ledgers = Opened(
        {
            "memory-ledger": lambda: "memory:",
            "sqlite": lambda: cast("str", request.getfixturevalue("sqlite_address")),
            "postgres": lambda: cast("str", request.getfixturevalue("shared_postgres_ledger")),
        }
    )
    yield ledgers
    ledgers.close()


@pytest.fixture
def stream() -> str:
    """A stream that no other test uses."""
    return f"run-{uuid.uuid4().hex[:12]}"


@pytest.fixture(params=STORES)
def ledger(request: pytest.FixtureRequest, opened: Opened) -> Turned:
    """Each ledger in turn, with a clock to turn."""
    return Turned(opened.sync(request.param))


@pytest.fixture(params=["memory", *STORES, "sqlite-async", "postgres-async"])
def store(request: pytest.FixtureRequest, opened: Opened, stream: str) -> Store:
    """Every store in turn."""
    kind: str = request.param
    if kind == "memory":
        return _in_memory()
    if kind.endswith("-async"):
        ledger = Turned(opened.asynchronous(kind.removesuffix("-async")))
        return Store(ledger, lambda **options: _blocking(ledger, stream, opened.runner, options))
    ledger = Turned(opened.sync(kind))
    return Store(ledger, lambda **options: StoredGateClient(cast("Ledger", ledger), stream, **options))


def _in_memory() -> Store:
    """One object is all there is; clients with another plan share its events."""
    clock = Clock()
    first: list[GateClient] = []

    def client(plan: RunPlan | None = None, **options: Any) -> Gates:
        if not first or plan is not None or options:
            made = GateClient(clock=clock, plan=plan, **options)
            if first:
                made._record(first[0].history())
            first[:] = [made]
        return first[0]

    return Store(clock, client)


def _blocking(ledger: Turned, stream: str, runner: asyncio.Runner, options: dict[str, Any]) -> Gates:
    return cast("Gates", Blocking(AsyncStoredGateClient(cast("Ledger", ledger), stream, **options), runner))


@pytest.fixture
def client(store: Store) -> Gates:
    """A client of each store in turn."""
    return store.client()
