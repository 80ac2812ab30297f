"""What the tests of the suite stand on: a ledger, and a way to ask it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from corrobo_core.commands import Claim, Holder, Load, Loaded, Open, Opened, Record, Refused, Written
from corrobo_core.records import Operation, OperationKey
from corrobo_core.testing._drivers import DRIVERS, Driver, ManagedLedger

__all__ = ["Asking", "Suite"]


class Asking:
    """Short forms of the questions, to one ledger by one driver."""

    def __init__(self, driver: Driver, ledger: ManagedLedger) -> None:
        self.driver, self.ledger = driver, ledger

    def open(self, operation: Operation) -> Opened:
        """Insert, or find."""
        return self.driver.ask(self.ledger, Open(operation))

    def load(self, operation: Operation | OperationKey) -> Loaded:
        """Read."""
        key = operation.key if isinstance(operation, Operation) else operation
        return self.driver.ask(self.ledger, Load(key))

    def load_when_gone(self, operation: Operation) -> Loaded:
        """Read until the holder is gone, for a second: a server may take a moment to notice a closed session."""
        deadline = time.monotonic() + 1.0
        loaded = self.load(operation)
        while loaded.holder is not Holder.GONE and time.monotonic() < deadline:
            time.sleep(0.01)
            loaded = self.load(operation)
        return loaded

    def stored(self, operation: Operation) -> Operation:
        """Read what must be there."""
        found = self.load(operation).operation
        assert found is not None
        return found

    def claim(self, operation: Operation) -> Written | Refused:
        """Reserve the latest attempt."""
        return self.driver.ask(self.ledger, Claim(operation))

    def record(self, operation: Operation) -> Written | Refused:
        """Store."""
        return self.driver.ask(self.ledger, Record(operation))

    def written(self, reply: Written | Refused) -> Operation:
        """What a write that must succeed has stored."""
        assert isinstance(reply, Written)
        return reply.operation


class Suite:
    """The fixtures of every test of the suite."""

    @pytest.fixture(params=sorted(DRIVERS))
    def driver(self, request: pytest.FixtureRequest) -> Iterator[Driver]:
        """Synchronous, then asynchronous."""
        with DRIVERS[request.param]() as driver:
            yield driver

    @pytest.fixture
    def ledger(self) -> ManagedLedger:
        """To be overridden: a migrated ledger of namespace ``default``, not entered, on an empty store."""
        raise NotImplementedError("override the fixture `ledger`")

    @pytest.fixture
    def asking(self, driver: Driver, ledger: ManagedLedger) -> Asking:
        """The ledger, open."""
        driver.enter(ledger)
        return Asking(driver, ledger)
