"""Asking a ledger synchronously, or on an event loop, with the same test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Protocol, Self, TypeVar

from corrobo_core.commands import LedgerCommand
from corrobo_core.ledgers.ports import Ledger

__all__ = ["DRIVERS", "AnotherLedger", "Driver", "ManagedLedger"]

R = TypeVar("R")

_THREADS = 8


class ManagedLedger(Ledger, Protocol):
    """A ledger with what its owner needs: a schema, and a beginning and an end."""

    def migrate(self) -> None:
        """Make or upgrade the schema."""
        ...

    def close(self) -> None:
        """Give everything back, the owner included."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class AnotherLedger(Protocol):
    """Makes one more ledger object on the same store, as another process would have."""

    def __call__(self, namespace: str = "default") -> ManagedLedger:
        """A new one, not entered."""
        ...


class Driver(Protocol):
    """How a test asks a ledger: synchronously or on an event loop."""

    def enter(self, ledger: ManagedLedger) -> None:
        """Open the ledger until the test ends."""
        ...

    def leave(self, ledger: ManagedLedger) -> None:
        """Close it now."""
        ...

    def ask(self, ledger: ManagedLedger, command: LedgerCommand[R]) -> R:
        """Perform one command."""
        ...

    def ask_at_once(self, asked: Sequence[tuple[ManagedLedger, LedgerCommand[R]]]) -> list[R]:
        """Perform all of them, racing; replies in the order of the questions."""
        ...


class _Sync:
    def __init__(self) -> None:
        self._open: list[ManagedLedger] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for ledger in reversed(self._open[:]):
            self.leave(ledger)

    def enter(self, ledger: ManagedLedger) -> None:
        ledger.__enter__()
        self._open.append(ledger)

    def leave(self, ledger: ManagedLedger) -> None:
        self._open.remove(ledger)
        ledger.__exit__(None, None, None)

    def ask(self, ledger: ManagedLedger, command: LedgerCommand[R]) -> R:
        return ledger.perform(command)

    def ask_at_once(self, asked: Sequence[tuple[ManagedLedger, LedgerCommand[R]]]) -> list[R]:
        with ThreadPoolExecutor(_THREADS) as threads:
            return [f.result() for f in [threads.submit(ledger.perform, command) for ledger, command in asked]]


class _Async:
    def __init__(self) -> None:
        self._open: list[ManagedLedger] = []
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._runner:
            for ledger in reversed(self._open[:]):
                self.leave(ledger)

    def enter(self, ledger: ManagedLedger) -> None:
        async def enter() -> None:
            await ledger.__aenter__()

        self._runner.run(enter())
        self._open.append(ledger)

    def leave(self, ledger: ManagedLedger) -> None:
        async def leave() -> None:
            await ledger.__aexit__(None, None, None)

        self._open.remove(ledger)
        self._runner.run(leave())

    def ask(self, ledger: ManagedLedger, command: LedgerCommand[R]) -> R:
        async def ask() -> R:
            return await ledger.perform_async(command)

        return self._runner.run(ask())

    def ask_at_once(self, asked: Sequence[tuple[ManagedLedger, LedgerCommand[R]]]) -> list[R]:
        async def ask_at_once() -> list[R]:
            return await asyncio.gather(*(ledger.perform_async(command) for ledger, command in asked))

        return self._runner.run(ask_at_once())


DRIVERS: dict[str, Callable[[], _Sync | _Async]] = {"sync": _Sync, "async": _Async}
