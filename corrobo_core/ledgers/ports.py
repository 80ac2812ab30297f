"""What a ledger must do. Every ledger passes ``corrobo_core.testing.LedgerConformance``.

Source: semantics section 6.
"""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

from corrobo_core.commands import LedgerCommand
from corrobo_core.records import OperationKey

__all__ = ["Ledger"]

R = TypeVar("R")


@runtime_checkable
class Ledger(Protocol):
    """Durable record of operations and attempts, for synchronous and asynchronous callers alike.

    Constructing one does no I/O. ``with ledger:`` and ``async with ledger:`` open and close it; the second
    closes what belongs to this event loop.

    Attributes:
        namespace: operations of two namespaces never meet, and may have equal ids (C8).
    """

    @property
    def namespace(self) -> str:
        """Operations of two namespaces never meet (C8)."""
        ...

    def perform(self, command: LedgerCommand[R], /) -> R:
        """Answer one command with one statement and one transaction.

        Serialization failures, deadlocks and lost connections are retried inside, for a bounded time (C9).

        Raises:
            LedgerUnavailable: the database did not answer in time. Retryable.
            LedgerNotMigratedError, LedgerTooNewError, StandbyError, DurabilityError, OwnerConnectionError:
                refused before anything was written. Not retryable.
        """
        ...

    async def perform_async(self, command: LedgerCommand[R], /) -> R:
        """`perform`, for a running event loop."""
        ...

    def pass_started(self, nonce: str, /) -> None:
        """Put a pass into this process's registry of running passes (C4). Attempts it reserves have nonces
        that begin with ``nonce`` and a dot.
        """
        ...

    def pass_ended(self, nonce: str, /) -> None:
        """Take it out again: its attempts are no longer run by this process."""
        ...

    def abandon(self, key: OperationKey, nonce: str, /) -> None:
        """Remember that the attempt reserved under ``nonce`` is no longer made and could not be recorded (L7).

        Does no I/O. The ledger marks it as soon as it can write again, so that other processes need not wait
        for this one to exit.
        """
        ...

    def idempotency_key(self, key: OperationKey, /) -> str:
        """The operation's stable key for the provider (I5). Called after the first command was answered."""
        ...
