"""Operations for tests of ledgers, by the state that they are in."""

from __future__ import annotations

import itertools
import secrets
from datetime import UTC, datetime, timedelta

from corrobo_core.canonical import fingerprint
from corrobo_core.frozen import evolve
from corrobo_core.records import (
    JSON,
    AttemptRecord,
    Disposition,
    Episode,
    Evidence,
    Failure,
    History,
    ObservationRecord,
    Operation,
    OperationKey,
    Outcome,
    Reason,
)

__all__ = ["filled", "new_nonce", "pass_of", "recorded", "reserving", "unsent"]

_INTENT = '{"amount_cents":5000}'
_numbers = itertools.count(1)


def new_nonce() -> str:
    """A nonce like those of a pass: the pass's own name, a dot, the number of the write."""
    return f"{secrets.token_hex(8)}.1"


def unsent(operation_id: str = "", *, namespace: str = "default", type: str = "test/effect") -> Operation:
    """A new operation without an attempt; a new id unless one is given."""
    key = OperationKey(namespace, operation_id or f"operation {next(_numbers)}", type)
    return Operation(key, _INTENT, fingerprint(_INTENT), nonce=new_nonce())


def reserving(operation: Operation, nonce: str | None = None) -> Operation:
    """The operation with one more attempt to reserve."""
    nonce = nonce or new_nonce()
    number = len(operation.attempts) + 1
    attempt = AttemptRecord(number, nonce, window=timedelta(seconds=10), timeout=timedelta(seconds=5))
    return evolve(operation, nonce=nonce, attempts=(*operation.attempts, attempt))


def recorded(operation: Operation, outcome: Outcome = Outcome.AMBIGUOUS) -> Operation:
    """The operation with its latest attempt ended, to be stored under a new nonce."""
    ended = evolve(operation.latest, outcome=outcome, ended=operation.latest.started)
    return evolve(operation, nonce=new_nonce(), owner=None, attempts=(*operation.attempts[:-1], ended))


def pass_of(operation: Operation) -> str:
    """The nonce of the pass that makes the latest attempt."""
    return operation.latest.nonce.partition(".")[0]


def filled(operation: Operation) -> Operation:
    """The operation with every field set to something that is easily lost."""
    at = datetime(2026, 2, 28, 23, 59, 59, 999999, tzinfo=UTC)
    value: JSON = {
        "text": "Zoë ☂ \u2028 '\"\\ 🧾",
        "none": None,
        "list": [1, 1.5, -0.25, True, [], {}],
        "": 2**53 - 1,
    }
    made = evolve(
        operation.latest,
        window=timedelta(days=3, microseconds=1),
        lag=timedelta(milliseconds=1),
        timeout=timedelta(seconds=0.5),
        finished_by_response=True,
        ended=at,
        outcome=Outcome.REJECTED,
        retryable=True,
        retry_after=at + timedelta(seconds=1),
        failure=Failure("ProviderError", "said 'no'; drop table corrobo_operation\n\t%s ? :x ü"),
        response=value,
        approval={"by": "someone"},
    )
    seen = [
        ObservationRecord(at + timedelta(seconds=n), 1, f"read {n}", n % 2 == 0, Evidence.PENDING, "CODE", "why")
        for n in range(25)
    ]
    history = History()
    for record in seen:
        history = history.plus(record)
    return evolve(
        operation,
        nonce=new_nonce(),
        owner=None,
        attempts=(*operation.attempts[:-1], made),
        disposition=Disposition.INVESTIGATE,
        reason=Reason.NOT_ESTABLISHED.value,
        explanation="cannot tell",
        retry_at=at,
        evidence=Evidence.UNKNOWN,
        effect=value,
        history=history,
        looks=3,
        looking_since=at,
        authorized="proceed",
        episode=Episode("token", 2, Disposition.INVESTIGATE, at, "why"),
    )
