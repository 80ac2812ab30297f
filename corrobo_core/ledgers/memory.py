"""A ledger in this process's memory, for tests and for trying things out. Nothing survives the process."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from corrobo_core.canonical import idempotency_key
from corrobo_core.clocks import stopwatch
from corrobo_core.commands import (
    Claim,
    Decide,
    Decided,
    Holder,
    KeepLate,
    LedgerCommand,
    Load,
    Loaded,
    NotDecided,
    Open,
    Opened,
    Reading,
    Record,
    Refused,
    Written,
)
from corrobo_core.frozen import evolve
from corrobo_core.ledgers._shared import with_reservation
from corrobo_core.ledgers.gate_port import Appended, AppendGate, GateLog, GateRows, ReadGates
from corrobo_core.records import Decision, Operation, OperationKey
from corrobo_core.rulings import Refusal, judge

__all__ = ["MemoryLedger"]

R = TypeVar("R")


def _utc_now() -> datetime:
    return datetime.now(UTC)


class MemoryLedger:
    """Operations in a dictionary.

    Args:
        namespace: operations of two namespaces never meet.
        clock: the ledger's clock; returns aware datetimes.

    Source: semantics section 6. It passes the same conformance suite as the durable ledgers; it survives
    nothing, so it protects nobody from a crash.
    """

    def __init__(self, *, namespace: str = "default", clock: Callable[[], datetime] = _utc_now) -> None:
        self._namespace = namespace
        self._clock = clock
        self._id = secrets.token_hex(16)
        self._owner = secrets.randbits(63)
        self._lock = threading.RLock()
        self._rows: dict[tuple[str, str], Operation] = {}
        self._running: set[str] = set()
        self._decisions: dict[tuple[str, str], tuple[Decision, ...]] = {}
        self.late: list[KeepLate] = []
        self._gates = GateLog()

    @property
    def namespace(self) -> str:
        """The namespace given."""
        return self._namespace

    def migrate(self) -> None:
        """Nothing to do; here so that every ledger has it."""

    def close(self) -> None:
        """Nothing to do; the operations stay as long as the object."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def pass_started(self, nonce: str, /) -> None:
        """Register a running pass."""
        self._running.add(nonce)

    def pass_ended(self, nonce: str, /) -> None:
        """Take it out again."""
        self._running.discard(nonce)

    def abandon(self, key: OperationKey, nonce: str, /) -> None:
        """Mark the attempt as given up."""
        with self._lock:
            row = self._rows.get((key.namespace, key.operation_id))
            if row is not None and row.reserved and row.latest.nonce == nonce:
                given_up = evolve(row.latest, abandoned=self._clock())
                attempts = (*row.attempts[:-1], given_up)
                self._store(evolve(row, attempts=attempts, owner=None, version=row.version + 1))

    def idempotency_key(self, key: OperationKey, /) -> str:
        """The operation's key for the provider (I5)."""
        return idempotency_key(self._id, key.namespace, key.type, key.operation_id)

    async def perform_async(self, command: LedgerCommand[R], /) -> R:
        """`perform`; it never waits."""
        return self.perform(command)

    def perform(self, command: LedgerCommand[R], /) -> R:
        """Answer one command."""
        with self._lock:
            return cast("R", self._answer(command))

    def _answer(self, command: LedgerCommand[Any]) -> Any:
        sent, now = stopwatch(), self._clock()
        match command:
            case Open(operation):
                stored = self._find(operation.key)
                if stored is None:
                    stored = self._store(self._written(operation, 1, now, reserves=operation.reserved))
                mine = stored.nonce == operation.nonce
                about = self._about(stored)
                return Opened(stored, mine, self._holder(stored), self._reading(sent, now), about)
            case Load(key):
                found = self._find(key)
                about = self._about(found)
                return Loaded(found, self._holder(found), self._reading(sent, now), about)
            case Claim(operation) | Record(operation):
                stored = self._find(operation.key)
                until = command.approved_until if isinstance(command, Claim) else None
                lapsed = until is not None and now >= until
                if stored is None or stored.version != operation.version or lapsed:
                    return Refused(self._reading(sent, now))
                reserves = isinstance(command, Claim) and operation.reserved
                new = self._written(operation, operation.version + 1, now, reserves=reserves)
                return Written(self._store(new), self._reading(sent, now))
            case Decide():
                return self._decide(command, self._reading(sent, now))
            case KeepLate():
                self.late.append(command)
                return None
            case ReadGates():
                return GateRows(self._gates.read(command), now)
            case AppendGate():
                return Appended(self._gates.append(command, now), now)
            case _:
                raise TypeError(f"no ledger command: {type(command).__name__}")

    def _about(self, operation: Operation | None) -> tuple[Decision, ...]:
        return self._decisions.get((operation.key.namespace, operation.key.operation_id), ()) if operation else ()

    def _decide(self, asked: Decide, reading: Reading) -> Decided | NotDecided:
        place = asked.namespace, asked.operation_id
        operation, decisions = self._rows.get(place), self._decisions.get(place, ())
        ruling = judge(operation, decisions, asked, reading.now)
        if operation is None or isinstance(ruling, Refusal):
            assert isinstance(ruling, Refusal)
            return NotDecided(ruling.code, operation, ruling.first, reading)
        if ruling in decisions:
            return Decided(ruling, operation, True, reading)
        self._decisions[place] = (*decisions, ruling)
        operation = self._store(evolve(operation, version=operation.version + 1))
        return Decided(ruling, operation, False, reading)

    def _written(self, operation: Operation, version: int, now: datetime, *, reserves: bool) -> Operation:
        if reserves:
            return with_reservation(operation, version, self._owner, now)
        return evolve(operation, version=version)

    def _find(self, key: OperationKey) -> Operation | None:
        return self._rows.get((key.namespace, key.operation_id))

    def _store(self, operation: Operation) -> Operation:
        self._rows[operation.key.namespace, operation.key.operation_id] = operation
        return operation

    def _holder(self, operation: Operation | None) -> Holder:
        if operation is None or operation.owner is None:
            return Holder.NOBODY
        running = operation.latest.nonce.partition(".")[0] in self._running
        return Holder.RUNNING if running else Holder.GONE

    @staticmethod
    def _reading(sent: float, now: datetime) -> Reading:
        return Reading(now, sent, stopwatch())
