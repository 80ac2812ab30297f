"""Short names for facts: times in seconds, attempts as they are stored, readings of the ledger's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from corrobo_core.commands import Reading
from corrobo_core.policy import Policy, RetryPolicy
from corrobo_core.records import AttemptRecord, Failure, OperationKey, Outcome

T0 = datetime(2026, 1, 1, tzinfo=UTC)
TICK = 0.000001
KEY = OperationKey("default", "rf_81", "payments/refund")
INTENT = '{"amount":5}'
FINGERPRINT = "v1:sha256:" + "0" * 64
TIMEOUT = Failure("ReadTimeout", "no answer")


def seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


def at(value: float) -> datetime:
    """The ledger's clock, in seconds since T0."""
    return T0 + timedelta(seconds=value)


def reading(now: float, sent: float | None = None, received: float | None = None) -> Reading:
    """One reading; unless said otherwise the stopwatch shows the same seconds and the statement takes no time."""
    return Reading(at(now), now if sent is None else sent, now if received is None else received)


def policy(window: float | None = 10, **declared: Any) -> Policy:
    """A policy whose hook may take half the window, as `effect` declares it."""
    if window:
        declared.setdefault("execute_timeout", seconds(window / 2))
    if "max_attempts" in declared:
        declared["retry"] = RetryPolicy(max_attempts=declared.pop("max_attempts"))
    return Policy(window=None if window is None else seconds(window), **declared)


def attempt(
    outcome: Outcome | None = Outcome.AMBIGUOUS,
    *,
    number: int = 1,
    started: float = 0,
    ended: float | None = None,
    window: float | None = 10,
    lag: float = 0,
    timeout: float | None = 5,
    nonce: str = "other.1",
    **fields: Any,
) -> AttemptRecord:
    """An attempt that another pass made; ``window`` is as recorded, lag included."""
    failure = fields.pop("failure", TIMEOUT if outcome is Outcome.AMBIGUOUS else None)
    return AttemptRecord(
        number=number,
        nonce=nonce,
        window=None if window is None else seconds(window),
        lag=seconds(lag),
        timeout=None if timeout is None else seconds(timeout),
        started=at(started),
        ended=None if ended is None else at(ended),
        outcome=outcome,
        failure=failure,
        **fields,
    )
