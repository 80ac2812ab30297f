"""What every hook is given, and `current_attempt` for code further down.

Source: semantics L9, O8, I5, I6.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any

from corrobo_core.clocks import stopwatch
from corrobo_core.errors import UsageError
from corrobo_core.frozen import frozen
from corrobo_core.records import AttemptRecord, Failure, History, Outcome

__all__ = ["Attempt", "current_attempt", "running_attempt"]


@frozen
class Attempt:
    """One attempt, as its hooks see it.

    Attributes:
        operation_type: such as ``payments/refund``.
        operation_id: the operation.
        namespace: of the ledger.
        number: 1 for the first attempt.
        idempotency_key: 64 hex digits, the same for every attempt of this operation (I5).
        deadline: this machine's wall clock at which the hook should have ended; None without a timeout.
        stops_at: the same on the process's stopwatch, in seconds; see `time_left`.
        outcome: how ``execute`` ended; None while it runs. ``UNRECORDED`` after a crash.
        response: what ``execute`` returned, if it did.
        failure: what ``execute`` raised, if it did.
        attempts: every attempt of the operation so far, this one last.
        history: what was observed so far.
        context: the runner's per-call context, for ``authorize`` and ``revalidate`` only (I6).
    """

    operation_type: str
    operation_id: str
    namespace: str
    number: int
    idempotency_key: str
    deadline: datetime | None = None
    stops_at: float | None = None
    outcome: Outcome | None = None
    response: Any = None
    failure: Failure | None = None
    attempts: tuple[AttemptRecord, ...] = ()
    history: History = field(default_factory=History)
    context: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def time_left(self) -> timedelta | None:
        """How long the hook may still take; None without a timeout. Never negative."""
        if self.stops_at is None:
            return None
        return timedelta(seconds=max(self.stops_at - stopwatch(), 0.0))


running_attempt: ContextVar[Attempt] = ContextVar("corrobo_attempt")
"""Set by the drivers while a hook runs."""


def current_attempt() -> Attempt:
    """The attempt whose hook is running, for code that is not handed it.

    Raises:
        UsageError: no hook is running here. Not retryable.
    """
    try:
        return running_attempt.get()
    except LookupError:
        raise UsageError("current_attempt()", "no hook of an effect is running here") from None
