"""An effect in memory, whose provider does what a test says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from corrobo_core import Attempt, Backoff, Check, Effect, MemoryLedger, Observation, Verdict, effect

APPLIED = Verdict.applied("THERE", effect="receipt")
NOT_APPLIED: Verdict[str] = Verdict.not_applied("NOT_THERE")
PENDING: Verdict[str] = Verdict.pending("ON_ITS_WAY")
UNKNOWN: Verdict[str] = Verdict.unknown("CANNOT_TELL")
CONFLICTED: Verdict[str] = Verdict.conflicted("SOMETHING_ELSE")


@dataclass
class Clock:
    """A ledger's clock that moves by hand, and a tenth of a second with each reading."""

    now: datetime = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.forward(seconds=0.1)
        return self.now

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)


@dataclass
class Provider:
    """What the world shows, in turn; the last goes on. And how often it was written to."""

    shows: list[Verdict[str] | Exception]
    proves_absence: bool = True
    raises: Exception | None = None
    writes: list[str] = field(default_factory=list)

    def write(self, reference: str) -> str:
        self.writes.append(reference)
        if self.raises is not None:
            raise self.raises
        return "receipt"

    def look(self) -> Verdict[str]:
        shown = self.shows.pop(0) if len(self.shows) > 1 else self.shows[0]
        if isinstance(shown, Exception):
            raise shown
        return shown


@dataclass
class Scripted:
    """A provider, an effect on it, and a ledger whose clock moves by hand."""

    provider: Provider
    effect: Effect[..., str]
    ledger: MemoryLedger
    clock: Clock


def scripted(
    *shows: Verdict[str] | Exception,
    proves_absence: bool = True,
    raises: Exception | None = None,
    authorize: Callable[[Attempt], Check] | None = None,
    type: str = "test/scripted",
    **declared: Any,
) -> Scripted:
    """An effect whose passes see these verdicts, one after the other."""
    provider, clock = Provider(list(shows), proves_absence, raises), Clock()
    declared = {
        "in_flight_window": timedelta(seconds=60),
        "poll": Backoff(timedelta(seconds=5), timedelta(seconds=5)),
        **declared,
    }

    @effect(type, identity=lambda reference, **_: reference, **declared)
    def send(attempt: Attempt, reference: str, amount_cents: int = 0) -> str:
        return provider.write(reference)

    @send.observe
    def seen(attempt: Attempt) -> Observation[Verdict[str]]:
        return Observation.of(provider.look(), source="test", proves_absence=provider.proves_absence)

    @seen.reconcile
    def judge(attempt: Attempt, shown: Verdict[str]) -> Verdict[str]:
        return shown

    if authorize is not None:
        send.authorize(authorize)
    return Scripted(provider, send, MemoryLedger(clock=clock), clock)


def reviewed(attempt: Attempt) -> Check:
    """An ``authorize`` that always asks a person."""
    return Check.requires_review("people decide")
