"""Credits at the HTTP ledger: naive activities, and the same writes as effects, sync and async."""

import asyncio
import os
from datetime import timedelta
from typing import ParamSpec

from temporalio import activity

from corrobo_core import AsyncEffect, Attempt, Backoff, BaseEffect, Effect, Observation, Verdict, effect
from examples.http_ledger import Credit, HttpLedger

P = ParamSpec("P")
POLL = Backoff(timedelta(milliseconds=100), timedelta(milliseconds=100))


def http_ledger() -> HttpLedger:
    """The outside system; the test says where it listens."""
    return HttpLedger(os.environ["HTTP_LEDGER_URL"])


# -- naive ---------------------------------------------------------------------------------------------------


@activity.defn
def naive(reference: str, amount_cents: int = 5_000) -> Credit:
    return http_ledger().credit("alice", reference, amount_cents)


@activity.defn
async def naive_async(reference: str, amount_cents: int = 5_000) -> Credit:
    return await asyncio.to_thread(http_ledger().credit, "alice", reference, amount_cents)


# -- effects -------------------------------------------------------------------------------------------------


def with_hooks(made: Effect[P, Credit]) -> Effect[P, Credit]:
    """Let an effect look for its credit at the HTTP ledger."""

    @made.observe
    def seen(attempt: Attempt) -> Observation[list[Credit]]:
        found = http_ledger().credits("alice", attempt.operation_id)
        return Observation.of(found, source="ledger.credits", proves_absence=True)

    seen.reconcile(_judge)
    return made


def with_async_hooks(made: AsyncEffect[P, Credit]) -> AsyncEffect[P, Credit]:
    """The same, without blocking the loop."""

    @made.observe
    async def seen(attempt: Attempt) -> Observation[list[Credit]]:
        found = await asyncio.to_thread(http_ledger().credits, "alice", attempt.operation_id)
        return Observation.of(found, source="ledger.credits", proves_absence=True)

    seen.reconcile(_judge)
    return made


def _judge(attempt: Attempt, found: list[Credit]) -> Verdict[Credit]:
    match found:
        case []:
            return Verdict.not_applied("NO_CREDIT")
        case [one]:
            return Verdict.applied("CREDITED", effect=one)
        case _:
            return Verdict.conflicted("OTHER_CREDITS", f"{len(found)} credits exist")


def _reference(reference: str, **_: object) -> str:
    return reference


# A window is a promise that also a busy machine must keep. Only tests that wait for its end take the short one.
_LONG, _SHORT = timedelta(seconds=20), timedelta(seconds=2)


@with_hooks
@effect("test/credit", identity=_reference, in_flight_window=_LONG, poll=POLL)
def credit(attempt: Attempt, reference: str, amount_cents: int = 5_000) -> Credit:
    return http_ledger().credit("alice", reference, amount_cents)


@with_async_hooks
@effect("test/credit-async", identity=_reference, in_flight_window=_LONG, poll=POLL)
async def credit_async(attempt: Attempt, reference: str, amount_cents: int = 5_000) -> Credit:
    return await asyncio.to_thread(http_ledger().credit, "alice", reference, amount_cents)


@with_hooks
@effect("test/soon", identity=_reference, in_flight_window=_SHORT, poll=POLL)
def soon(attempt: Attempt, reference: str, amount_cents: int = 5_000) -> Credit:
    return http_ledger().credit("alice", reference, amount_cents)


@with_async_hooks
@effect("test/soon-async", identity=_reference, in_flight_window=_SHORT, poll=POLL)
async def soon_async(attempt: Attempt, reference: str, amount_cents: int = 5_000) -> Credit:
    return await asyncio.to_thread(http_ledger().credit, "alice", reference, amount_cents)


ALL: list[BaseEffect[..., Credit]] = [credit, credit_async, soon, soon_async]
