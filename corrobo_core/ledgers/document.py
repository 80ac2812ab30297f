"""The one JSON document that holds an operation with its attempts, and how it is read back.

Columns hold what statements look at (namespace, id, type, fingerprint, intent, version, owner, nonce, started);
the document holds the rest. ``started`` of the latest attempt is the column's, since the database's clock sets it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, TypeVar

from corrobo_core.errors import LedgerCorruptError
from corrobo_core.frozen import evolve
from corrobo_core.records import (
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
)

__all__ = ["DAMAGED", "FORMAT", "from_row", "of", "read_time", "to_document"]

T = TypeVar("T")
FORMAT = 1
# What reading a document raises that no release has written.
DAMAGED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
_MICROSECOND = timedelta(microseconds=1)
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def to_document(operation: Operation) -> str:
    """The document's JSON text: plain ASCII, without NUL, lone surrogates or NaN (T4)."""
    return _ENCODER.encode(_operation(operation))


def _operation(op: Operation) -> dict[str, Any]:
    return _without_none(
        {
            "format": FORMAT,
            "attempts": [_attempt(attempt) for attempt in op.attempts],
            "disposition": op.disposition,
            "reason": op.reason,
            "explanation": op.explanation or None,
            "retry_at": _time(op.retry_at),
            "evidence": op.evidence,
            "effect": op.effect,
            "history": _history(op.history) if op.history.count else None,
            "looks": op.looks or None,
            "looking_since": _time(op.looking_since),
            "authorized": op.authorized,
            "episode": _episode(op.episode) if op.episode else None,
            "episodes": op.episodes or None,
            "review": _episode(op.review) if op.review else None,
        }
    )


def _attempt(a: AttemptRecord) -> dict[str, Any]:
    return _without_none(
        {
            "number": a.number,
            "nonce": a.nonce,
            "window_us": _duration(a.window),
            "lag_us": _duration(a.lag) or None,
            "timeout_us": _duration(a.timeout),
            "finished_by_response": a.finished_by_response or None,
            "started": _time(a.started),
            "ended": _time(a.ended),
            "outcome": a.outcome,
            "retryable": a.retryable or None,
            "retry_after": _time(a.retry_after),
            "failure": {"type": a.failure.type, "message": a.failure.message} if a.failure else None,
            "response": a.response,
            "abandoned": _time(a.abandoned),
            "approval": a.approval,
        }
    )


def _history(history: History) -> dict[str, Any]:
    assert history.first is not None
    kept = [_observation(record) for record in history.last]
    # The first is kept apart only once it has left the last twenty.
    first = _observation(history.first) if history.count > len(history.last) else None
    return _without_none({"first": first, "last": kept, "count": history.count})


def _observation(o: ObservationRecord) -> dict[str, Any]:
    return {
        "began": _time(o.began),
        "attempt": o.attempt,
        "source": o.source,
        "proves_absence": o.proves_absence,
        "evidence": o.evidence,
        "code": o.code,
        "explanation": o.explanation,
    }


def _episode(e: Episode) -> dict[str, Any]:
    return {
        "token": e.token,
        "generation": e.generation,
        "kind": e.kind,
        "opened_at": _time(e.opened_at),
        "reason": e.reason,
        "asked_by": e.asked_by,
    }


def _without_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def _duration(value: timedelta | None) -> int | None:
    return None if value is None else value // _MICROSECOND


# -- reading back --------------------------------------------------------------------------------------------


def from_row(
    *,
    ledger: str,
    namespace: str,
    operation_id: str,
    operation_type: str,
    intent: str,
    fingerprint: str,
    version: int,
    owner: int | None,
    nonce: str,
    started: datetime | None,
    document: str | Mapping[str, Any],
) -> Operation:
    """The operation that one row holds: its columns, and the document as JSON text or already parsed.

    ``ledger`` is for the error text; ``started`` is aware, and of the latest attempt.

    Raises:
        LedgerCorruptError: the document is damaged, or of a format that this release does not know.
    """
    try:
        fields: Mapping[str, Any] = json.loads(document) if isinstance(document, str) else document
        if fields["format"] != FORMAT:
            raise ValueError(f"format {fields['format']!r}")
        operation = Operation(
            key=OperationKey(namespace, operation_id, operation_type),
            intent=intent,
            fingerprint=fingerprint,
            version=version,
            nonce=nonce,
            owner=owner,
            attempts=tuple(_read_attempt(a) for a in fields["attempts"]),
            disposition=_enum(Disposition, fields.get("disposition")),
            reason=of(str, fields["reason"]),
            explanation=fields.get("explanation", ""),
            retry_at=_read_time(fields.get("retry_at")),
            evidence=_enum(Evidence, fields.get("evidence")),
            effect=fields.get("effect"),
            history=_read_history(fields.get("history")),
            looks=fields.get("looks", 0),
            looking_since=_read_time(fields.get("looking_since")),
            authorized=fields.get("authorized"),
            episode=_read_episode(fields.get("episode")),
            episodes=fields.get("episodes", 0),
            review=_read_episode(fields.get("review")),
        )
        return _with_started(operation, started)
    except DAMAGED as error:
        raise LedgerCorruptError(
            ledger,
            f"operation {operation_id!r} of type {operation_type!r}: its record does not read back"
            f" ({type(error).__name__}); nothing was sent. Look at the row by hand",
        ) from None


def _with_started(operation: Operation, started: datetime | None) -> Operation:
    """``started`` is of the latest attempt. Without its attempt the row would read as "never sent"."""
    attempts = operation.attempts
    if not attempts:
        if started is not None:
            raise ValueError("a start without its attempt")
        return operation
    if any(later.number <= earlier.number for earlier, later in pairwise(attempts)):
        raise ValueError("attempts out of order")
    latest = attempts[-1]
    if latest.started is None and started is not None:
        return evolve(operation, attempts=(*attempts[:-1], evolve(latest, started=started)))
    if latest.started is None or latest.started != started:
        raise ValueError("the latest attempt is not the one that was started last")
    return operation


def _read_attempt(a: Mapping[str, Any]) -> AttemptRecord:
    failure = a.get("failure")
    return AttemptRecord(
        number=of(int, a["number"]),
        nonce=of(str, a["nonce"]),
        window=_read_duration(a.get("window_us")),
        lag=_read_duration(a.get("lag_us", 0)) or timedelta(),
        timeout=_read_duration(a.get("timeout_us")),
        finished_by_response=a.get("finished_by_response", False),
        started=_read_time(a.get("started")),
        ended=_read_time(a.get("ended")),
        outcome=_enum(Outcome, a.get("outcome")),
        retryable=a.get("retryable", False),
        retry_after=_read_time(a.get("retry_after")),
        failure=Failure(of(str, failure["type"]), of(str, failure["message"])) if failure else None,
        response=a.get("response"),
        abandoned=_read_time(a.get("abandoned")),
        approval=a.get("approval"),
    )


def _read_history(h: Mapping[str, Any] | None) -> History:
    if h is None:
        return History()
    last = tuple(_read_observation(o) for o in h["last"])
    first = h.get("first")
    return History(_read_observation(first) if first else last[0], last, of(int, h["count"]))


def _read_observation(o: Mapping[str, Any]) -> ObservationRecord:
    return ObservationRecord(
        began=read_time(o["began"]),
        attempt=of(int, o["attempt"]),
        source=of(str, o["source"]),
        proves_absence=of(bool, o["proves_absence"]),
        evidence=Evidence(o["evidence"]),
        code=of(str, o["code"]),
        explanation=of(str, o["explanation"]),
    )


def _read_episode(e: Mapping[str, Any] | None) -> Episode | None:
    if e is None:
        return None
    opened = read_time(e["opened_at"])
    kind = Disposition(e["kind"])
    return Episode(of(str, e["token"]), of(int, e["generation"]), kind, opened, of(str, e["reason"]), e["asked_by"])


def of(kind: type[T], value: object) -> T:
    """A field that is there in every document. Raises TypeError on one of another type."""
    if not isinstance(value, kind):
        raise TypeError(f"no {kind.__name__}")
    return value


def _read_time(text: str | None) -> datetime | None:
    return None if text is None else read_time(text)


def read_time(text: str) -> datetime:
    """A stored time, which has a time zone (D5). Raises ValueError or TypeError on any other text."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError("a time without a time zone")
    return time


def _read_duration(microseconds: int | None) -> timedelta | None:
    return None if microseconds is None else timedelta(microseconds=microseconds)


def _enum(kind: Any, value: str | None) -> Any:
    return None if value is None else kind(value)
