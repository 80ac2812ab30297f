"""An outside system that counts, effects on it, and a ledger whose commands can be watched or made to fail."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from corrobo_core import Attempt, Effect, MemoryLedger, Observation, Verdict, effect
from corrobo_core.commands import LedgerCommand

R = TypeVar("R")


class World:
    """The authoritative system: what was sent to it, and what is there."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.reads = 0

    def credit(self, reference: str) -> int:
        self.sent.append(reference)
        return len(self.sent)

    def find(self, reference: str) -> Observation[list[str]]:
        self.reads += 1
        found = [one for one in self.sent if one == reference]
        return Observation.of(found, source="world", proves_absence=True)


def judge(found: list[str]) -> Verdict[int]:
    if not found:
        return Verdict.not_applied("NOTHING")
    return Verdict.applied("THERE", effect=len(found)) if len(found) == 1 else Verdict.conflicted("TWICE")


def failing(error: BaseException) -> Callable[..., Any]:
    """A hook that raises this."""

    def hook(*_: Any) -> Any:
        raise error

    return hook


def credit_effect(world: World, **options: Any) -> Effect[[str, int], int]:
    """``credit(reference, amount)`` on this world, with any declarations."""
    options.setdefault("identity", lambda reference, **_: reference)
    options.setdefault("in_flight_window", timedelta(seconds=10))

    @effect("world/credit", **options)
    def credit(attempt: Attempt, reference: str, amount: int) -> int:
        return world.credit(reference)

    @credit.observe
    def see(attempt: Attempt, reference: str, amount: int) -> Observation[list[str]]:
        return world.find(reference)

    @see.reconcile
    def verdict(attempt: Attempt, found: list[str]) -> Verdict[int]:
        return judge(found)

    return credit


class WatchedLedger(MemoryLedger):
    """A memory ledger that remembers its commands; ``before`` and ``after`` may raise, or do something."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: list[LedgerCommand[Any]] = []
        self.before: Callable[[LedgerCommand[Any]], None] = lambda _: None
        self.after: Callable[[LedgerCommand[Any]], None] = lambda _: None

    def perform(self, command: LedgerCommand[R], /) -> R:
        self.before(command)
        self.commands.append(command)
        reply = super().perform(command)
        self.after(command)
        return reply

    @property
    def asked(self) -> list[str]:
        return [type(command).__name__ for command in self.commands]
