"""One process that works on operations, and can be made to end, or to stand still, around any of its steps.

Nothing else in the library knows of this: the steps are the commands that pass through a wrapping ledger, and the
hooks. Once a process has ended, nothing more is done in its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeVar

from corrobo_core.commands import LedgerCommand
from corrobo_core.ledgers.ports import Ledger
from corrobo_core.records import OperationKey

__all__ = ["Killed", "Process", "Side", "Wrapped"]

R = TypeVar("R")
Side = Literal["before", "after"]


class Killed(BaseException):
    """The process is no more."""


class Process:
    """Counts its steps, and does something at one of them.

    Args:
        ledger: this process's own.
        at: number of the step, from 1; 0 for none.
        side: before or after that step.
        what: called there; unless given, the process ends.
        done: steps that were made before, by the process that this one goes on for.
    """

    def __init__(
        self,
        ledger: Ledger,
        at: int = 0,
        side: Side = "before",
        what: Callable[[], None] | None = None,
        done: int = 0,
    ) -> None:
        self.ledger = Wrapped(ledger, self)
        self.at, self.side, self.what = at, side, what
        self.steps: list[str] = []
        self.dead = False
        self.nonces: list[str] = []
        self._done = done

    @property
    def count(self) -> int:
        """The number of the latest step."""
        return self._done + len(self.steps)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """One thing that the process does."""
        if self.dead:
            raise Killed
        self.steps.append(name)
        here = self.count == self.at
        if here and self.side == "before":
            self._reached()
        try:
            yield
        finally:
            if here and self.side == "after":
                self._reached()

    def _reached(self) -> None:
        if self.what is not None:
            self.what()
            return
        self.dead = True
        raise Killed


class Wrapped:
    """A ledger as one process sees it."""

    def __init__(self, inner: Ledger, process: Process) -> None:
        self._inner, self._process = inner, process

    @property
    def namespace(self) -> str:
        """The inner ledger's."""
        return self._inner.namespace

    def perform(self, command: LedgerCommand[R], /) -> R:
        """One step."""
        with self._process.step(type(command).__name__):
            return self._inner.perform(command)

    async def perform_async(self, command: LedgerCommand[R], /) -> R:
        """One step."""
        with self._process.step(type(command).__name__):
            return await self._inner.perform_async(command)

    def pass_started(self, nonce: str, /) -> None:
        """Remember it, to bury it when the process has ended."""
        self._process.nonces.append(nonce)
        self._inner.pass_started(nonce)

    def pass_ended(self, nonce: str, /) -> None:
        """Nothing is done in the name of the dead."""
        if not self._process.dead:
            self._inner.pass_ended(nonce)

    def abandon(self, key: OperationKey, nonce: str, /) -> None:
        """Nothing is done in the name of the dead."""
        if not self._process.dead:
            self._inner.abandon(key, nonce)

    def idempotency_key(self, key: OperationKey, /) -> str:
        """The inner ledger's."""
        return self._inner.idempotency_key(key)
