"""The one effect of the demo: a credit at the HTTP ledger, and its naive twin."""

import os
from datetime import timedelta

from corrobo_core import Attempt, Observation, Verdict, effect
from examples.http_ledger import Credit, HttpLedger

WINDOW = timedelta(seconds=1)


def http_ledger() -> HttpLedger:
    """The outside system; the demo says where it listens."""
    return HttpLedger(os.environ["HTTP_LEDGER_URL"])


def credit_naively(reference: str, amount_cents: int) -> Credit:
    """Send the write, and leave the rest to the engine's retries."""
    return http_ledger().credit("alice", reference, amount_cents)


@effect("demo/credit", identity=lambda reference, **_: reference, in_flight_window=WINDOW)
def credit(attempt: Attempt, reference: str, amount_cents: int) -> Credit:
    """Send the same write, as an effect."""
    return http_ledger().credit("alice", reference, amount_cents)


@credit.observe
def credits_with_reference(attempt: Attempt) -> Observation[list[Credit]]:
    found = http_ledger().credits("alice", reference=attempt.operation_id)
    return Observation.of(found, source="ledger.credits", proves_absence=True)


@credits_with_reference.reconcile
def judge(attempt: Attempt, found: list[Credit], reference: str, amount_cents: int) -> Verdict[Credit]:
    match found:
        case []:
            return Verdict.not_applied("NO_CREDIT", "no credit carries this reference")
        case [one] if one.amount_cents == amount_cents:
            return Verdict.applied("CREDITED", "exactly one credit exists", effect=one)
        case _:
            return Verdict.conflicted("OTHER_CREDITS", f"{len(found)} credits exist, or another amount")
