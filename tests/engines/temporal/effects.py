"""Credits at the HTTP ledger: naive activities, and the same writes as effects, sync and async."""

import asyncio
import os
from datetime import timedelta

from temporalio import activity

from corrobo_core import Attempt, Backoff, Observation, Verdict, effect
from examples.http_ledger import Credit, HttpLedger

WINDOW = timedelta(seconds=1)
POLL = Backoff(timedelta(milliseconds=100), timedelta(milliseconds=100))


def http_ledger() -> HttpLedger:
    """The outside system; the test says where it listens."""
    return HttpLedger(os.environ["HTTP_LEDGER_URL"])


def _judged(found: list[Credit]) -> Verdict[Credit]:
    match found:
        case []:
            return Verdict.not_applied("NO_CREDIT")
        case [one]:
            return Verdict.applied("CREDITED", effect=one)
        case _:
            return Verdict.conflicted("OTHER_CREDITS", f"{len(found)} credits exist")


# -- naive ---------------------------------------------------------------------------------------------------


@activity.defn
def naive(reference: str, amount_cents: int = 5_000) -> Credit:
    return http_ledger().credit("alice", reference, amount_cents)


@activity.defn
async def naive_async(reference: str, amount_cents: int = 5_000) -> Credit:
    return await asyncio.to_thread(http_ledger().credit, "alice", reference, amount_cents)


# -- effects -------------------------------------------------------------------------------------------------


@effect("test/credit", identity=lambda reference, **_: reference, in_flight_window=WINDOW, poll=POLL)
def credit(attempt: Attempt, reference: str, amount_cents: int = 5_000) -> Credit:
    return http_ledger().credit("alice", reference, amount_cents)


@credit.observe
def _credits(attempt: Attempt) -> Observation[list[Credit]]:
    found = http_ledger().credits("alice", attempt.operation_id)
    return Observation.of(found, source="ledger.credits", proves_absence=True)


@_credits.reconcile
def _judge(attempt: Attempt, found: list[Credit]) -> Verdict[Credit]:
    return _judged(found)


@effect("test/credit-async", identity=lambda reference, **_: reference, in_flight_window=WINDOW, poll=POLL)
async def credit_async(attempt: Attempt, reference: str, amount_cents: int = 5_000) -> Credit:
    return await asyncio.to_thread(http_ledger().credit, "alice", reference, amount_cents)


@credit_async.observe
async def _credits_async(attempt: Attempt) -> Observation[list[Credit]]:
    found = await asyncio.to_thread(http_ledger().credits, "alice", attempt.operation_id)
    return Observation.of(found, source="ledger.credits", proves_absence=True)


@_credits_async.reconcile
def _judge_async(attempt: Attempt, found: list[Credit]) -> Verdict[Credit]:
    return _judged(found)
