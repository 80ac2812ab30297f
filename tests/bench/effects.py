"""Effects with hooks that do nothing, or wait: what is measured is what the library adds."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from corrobo_core import AsyncEffect, Attempt, Effect, Observation, Verdict, effect

WINDOW = timedelta(seconds=60)


@effect("bench/empty", identity=lambda reference: reference, in_flight_window=WINDOW)
def empty(attempt: Attempt, reference: str) -> None:
    """Write nothing."""


@empty.observe
def _seen(attempt: Attempt) -> Observation[bool]:
    return Observation.of(True, source="bench", proves_absence=True)


@_seen.reconcile
def _judge(attempt: Attempt, found: bool) -> Verdict[None]:
    return Verdict.applied("THERE", effect=None)


def waiting(seconds: float) -> AsyncEffect[[str], None]:
    """An asynchronous effect whose provider takes so long."""

    @effect("bench/waiting", identity=lambda reference: reference, in_flight_window=WINDOW)
    async def wait(attempt: Attempt, reference: str) -> None:
        if seconds:
            await asyncio.sleep(seconds)

    @wait.observe
    async def seen(attempt: Attempt) -> Observation[bool]:
        return Observation.of(True, source="bench", proves_absence=True)

    @seen.reconcile
    def judge(attempt: Attempt, found: bool) -> Verdict[None]:
        return Verdict.applied("THERE", effect=None)

    return wait


SYNC: Effect[[str], None] = empty
