"""One process that works on operations, and can be made to end, or to stand still, around any of its steps.

Nothing in the library knows of this: the steps are the commands that pass through a wrapping ledger, and the
hooks. Once a process has ended, nothing more is done in its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Literal, TypeVar

from corrobo_core import Attempt, Backoff, Check, Effect, Observation, RetryPolicy, Verdict, effect
from corrobo_core.commands import LedgerCommand
from corrobo_core.ledgers.ports import Ledger
from corrobo_core.records import OperationKey
from tests.crash.outside import Outside, Scenario

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
        return self._inner.namespace

    def perform(self, command: LedgerCommand[R], /) -> R:
        with self._process.step(type(command).__name__):
            return self._inner.perform(command)

    async def perform_async(self, command: LedgerCommand[R], /) -> R:
        with self._process.step(type(command).__name__):
            return await self._inner.perform_async(command)

    def pass_started(self, nonce: str, /) -> None:
        self._process.nonces.append(nonce)
        self._inner.pass_started(nonce)

    def pass_ended(self, nonce: str, /) -> None:
        if not self._process.dead:
            self._inner.pass_ended(nonce)

    def abandon(self, key: OperationKey, nonce: str, /) -> None:
        if not self._process.dead:
            self._inner.abandon(key, nonce)

    def idempotency_key(self, key: OperationKey, /) -> str:
        return self._inner.idempotency_key(key)


class Seat:
    """The process that runs an effect just now; one effect serves many processes."""

    process: Process

    def step(self, name: str) -> AbstractContextManager[None]:
        return self.process.step(name)


def credit_effect(scenario: Scenario, outside: Outside, seat: Seat, window: float) -> Effect[[str], int]:
    """The effect of a scenario; each of its hooks is a step of the process in the seat."""
    short, long = (Backoff(wait, wait) for wait in (timedelta(seconds=window / 20), timedelta(seconds=window / 2)))

    @effect(
        "crash/credit",
        identity=lambda reference: reference,
        in_flight_window=timedelta(seconds=window),
        execute_timeout=timedelta(seconds=window / 3),
        retry=RetryPolicy(max_attempts=3, backoff=short),
        poll=long,
    )
    def credit(attempt: Attempt, reference: str) -> int:
        with seat.step("execute"):
            return outside.request(scenario, reference)

    @credit.observe
    def see(attempt: Attempt, reference: str) -> Observation[list[str]]:
        with seat.step("observe"):
            return Observation.of(outside.read(scenario, reference), source="outside", proves_absence=True)

    @see.reconcile
    def judge(attempt: Attempt, found: list[str]) -> Verdict[int]:
        with seat.step("reconcile"):
            match found:
                case []:
                    return Verdict.not_applied("NOTHING")
                case ["pending"]:
                    return Verdict.pending("PENDING")
                case ["done"]:
                    return Verdict.applied("DONE", effect=1)
                case _:
                    return Verdict.conflicted("DUPLICATES", f"{len(found)} effects")

    if scenario.checks:
        credit.authorize(_check("authorize", seat))
        credit.revalidate(_check("revalidate", seat))
    return credit


def _check(name: str, seat: Seat) -> Callable[[Attempt], Check]:
    def hook(attempt: Attempt) -> Check:
        with seat.step(name):
            return Check.proceed()

    return hook
