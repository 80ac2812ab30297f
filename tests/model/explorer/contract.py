"""The contract of the explored effect, whose hooks take as long and end as the explorer says; and its time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from unittest.mock import patch

from corrobo_core import Attempt, Check, Effect, Observation, Verdict, attempt, effect, hooks
from corrobo_core.ledgers import memory

START = datetime(2001, 1, 1, tzinfo=UTC)  # so that every worker's own clock is decades ahead of the ledger's (D5)


def at(time: int) -> datetime:
    """The ledger's clock after so many seconds."""
    return START + timedelta(seconds=time)


def seconds_of(moment: datetime) -> int:
    """Seconds since the start, rounded up: the first moment of the explored time that is not before."""
    return -((START - moment) // timedelta(seconds=1))


class Clock:
    """The ledger's clock and everybody's stopwatch: whole seconds, moved by the explorer alone."""

    def __init__(self) -> None:
        self.time = 0

    def __call__(self) -> datetime:
        return at(self.time)

    def stopwatch(self) -> float:
        return float(self.time)

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """While inside, the library measures time with this clock."""
        modules = (attempt, hooks, memory)
        patches = [patch.object(module, "stopwatch", self.stopwatch) for module in modules]
        for one in patches:
            one.start()
        try:
            yield
        finally:
            for one in patches:
                one.stop()


class Ending(NamedTuple):
    """How a hook ends: when, and with this value or this error."""

    at: int
    value: Any = None
    error: BaseException | None = None


class Script:
    """How the hook that is called next will end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.next = Ending(0)

    def play(self) -> Any:
        self._clock.time = self.next.at
        if self.next.error is not None:
            raise self.next.error
        return self.next.value


class Seen(NamedTuple):
    """What one read finds."""

    effects: int
    pending: bool = False


def credit_effect(
    script: Script, declared: Mapping[str, Any], *, asks: bool, proves_absence: bool
) -> Effect[[str], str]:
    """The contract with these declarations; ``asks``: it has ``authorize`` and ``revalidate``."""

    @effect("model/credit", identity=lambda reference: reference, **declared)
    def credit(attempt: Attempt, reference: str) -> str:
        return str(script.play())

    @credit.observe
    def see(attempt: Attempt) -> Observation[Seen]:
        return Observation.of(script.play(), source="outside", proves_absence=proves_absence)

    @see.reconcile
    def judge(attempt: Attempt, seen: Seen) -> Verdict[str]:
        if seen.effects > 1:
            return Verdict.conflicted("TWICE")
        if seen.effects == 1:
            return Verdict.applied("THERE", effect="credited")
        return Verdict.pending("ON_ITS_WAY") if seen.pending else Verdict.not_applied("NOTHING")

    if asks:

        @credit.authorize
        def authorize(attempt: Attempt) -> Check:
            return Check.requires_review("always ask")

        @credit.revalidate
        def revalidate(attempt: Attempt) -> Check:
            answer = script.play()
            assert isinstance(answer, Check)
            return answer

    return credit
