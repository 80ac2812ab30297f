"""An outside system inside the test, for reports that are about what it says and not about how it is reached."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from corrobo_core import Attempt, Backoff, Effect, Observation, Verdict, effect
from tests.support.credits import time_to_begin

T = TypeVar("T")


class Provider:
    """Does what it is told, as often as it is told.

    Attributes:
        done: the value of each effect that was carried out.
        sends: how many requests came, carried out or not.
        says: what a read returns instead of what was done; None: the truth.
        unreadable: reads fail.
    """

    def __init__(self, value: object = "done") -> None:
        self.value = value
        self.done: list[object] = []
        self.sends = 0
        self.says: list[object] | None = None
        self.unreadable = False
        self.error: BaseException | None = None
        self.loses_request = False

    def fail(self, error: BaseException, *, loses_request: bool = False) -> None:
        """Raise this in place of the next answer; the request is carried out unless it is lost."""
        self.error, self.loses_request = error, loses_request

    def send(self) -> object:
        """Carry it out."""
        error, self.error = self.error, None
        self.sends += 1
        if error is None or not self.loses_request:
            self.done.append(self.value)
        if error is not None:
            raise error
        return self.value

    def find(self) -> list[object]:
        """What there is."""
        if self.unreadable:
            raise ConnectionError("the provider is down")
        return list(self.done if self.says is None else self.says)


class Clock:
    """A clock for `MemoryLedger` that is moved by hand."""

    def __init__(self) -> None:
        self.now = datetime(2031, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, by: timedelta) -> None:
        """Let time pass."""
        self.now += by


def judge(found: list[T]) -> Verdict[T]:
    """None, exactly one, or something else."""
    match found:
        case []:
            return Verdict.not_applied("NONE")
        case [one]:
            return Verdict.applied("ONE", effect=one)
        case _:
            return Verdict.conflicted("OTHERS", f"{len(found)} of them")


def effect_at(
    provider: Provider,
    *,
    proves_absence: bool = True,
    reconcile: Callable[[list[object]], Verdict[object]] = judge,
    **declared: Any,
) -> Effect[[str], object]:
    """An effect of one text, which is also its operation id."""
    declared.setdefault("poll", Backoff(timedelta(milliseconds=50), timedelta(milliseconds=200)))

    @effect("test/effect", identity=lambda name: name, **time_to_begin(declared))
    def do(attempt: Attempt, name: str) -> object:
        return provider.send()

    @do.observe
    def seen(attempt: Attempt) -> Observation[list[object]]:
        return Observation.of(provider.find(), source="provider", proves_absence=proves_absence)

    @seen.reconcile
    def judged(attempt: Attempt, found: list[object]) -> Verdict[object]:
        return reconcile(found)

    return do
