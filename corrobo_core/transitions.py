"""What an operation looks like after each thing that can happen to it. Pure; the lifecycle decides which.

Source: semantics L5, L9, C5, R3, R5, R8.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from corrobo_core.commands import Executed, Reading
from corrobo_core.frozen import evolve
from corrobo_core.policy import Policy
from corrobo_core.records import (
    JSON,
    AttemptRecord,
    Check,
    Decision,
    DecisionKind,
    Disposition,
    Episode,
    Evidence,
    History,
    ObservationRecord,
    Operation,
    Outcome,
    Reason,
)
from corrobo_core.rulings import Approval

__all__ = [
    "answers_review",
    "closed_by",
    "decided_by_person",
    "late_evidence",
    "next_attempt",
    "observable_from",
    "overtaken",
    "reserving",
    "superseded",
    "was_paused",
    "with_attestation",
    "with_outcome",
]

_KEPT_NOT_SENT = 8  # attempts that never left prove nothing later; the record must not grow with them
_WINDOW_UNDECLARED = timedelta(minutes=10)  # C5


def next_attempt(
    before: tuple[AttemptRecord, ...], nonce: str, policy: Policy, approval: Approval | None = None
) -> AttemptRecord:
    """One more attempt, not yet started."""
    return AttemptRecord(
        number=before[-1].number + 1 if before else 1,
        nonce=nonce,
        window=policy.settles_after,
        lag=policy.observation_lag,
        timeout=policy.execute_timeout,
        finished_by_response=policy.responds_after_effect,
        approval=_approval_record(approval) if approval else None,
    )


def reserving(operation: Operation, nonce: str, policy: Policy, approval: Approval | None = None) -> Operation:
    """The operation with one more attempt."""
    return evolve(
        operation,
        attempts=(*_pruned(operation.attempts), next_attempt(operation.attempts, nonce, policy, approval)),
        nonce=nonce,
        disposition=None,
        reason=Reason.IN_PROGRESS.value,
        explanation="",
        retry_at=None,
        looks=0,
        looking_since=None,
        episode=None,
    )


def _approval_record(approval: Approval) -> JSON:
    """The approval in force, as it is copied onto the attempt (R5)."""
    decision = approval.decision
    return {
        "token": decision.token,
        "reviewer": decision.reviewer,
        "decided_at": decision.decided_at.isoformat(),
        "until": approval.until.isoformat() if approval.until else None,
    }


def _pruned(attempts: tuple[AttemptRecord, ...]) -> tuple[AttemptRecord, ...]:
    not_sent = [a for a in attempts if a.outcome is Outcome.NOT_SENT]
    dropped = {a.number for a in not_sent[:-_KEPT_NOT_SENT]}
    return tuple(a for a in attempts if a.number not in dropped) if dropped else attempts


def with_outcome(reserved: AttemptRecord, done: Executed, reading: Reading) -> AttemptRecord:
    """The attempt, as its hook ended."""
    ended = reading.at_most(done.ended)
    return evolve(
        reserved,
        ended=ended,
        outcome=done.outcome,
        retryable=done.retryable,
        retry_after=None if done.retry_after is None else ended + done.retry_after,
        failure=done.failure,
        response=done.response,
    )


def was_paused(attempt: AttemptRecord) -> bool:
    """Not sent, and not because it could not be: the process was stopped for too long (L9)."""
    return attempt.outcome is Outcome.NOT_SENT and attempt.failure is None


def closed_by(operation: Operation, reason: Reason, why: str) -> Operation:
    """Nothing is attempted any more: a new plan is needed."""
    return evolve(
        operation,
        disposition=Disposition.REPLAN,
        reason=reason.value,
        explanation=why,
        retry_at=None,
        episode=None,
    )


def answers_review(review: Episode | None, answer: Check) -> bool:
    """The approved review was asked for by ``revalidate``, with these very words."""
    return review is not None and (review.asked_by, review.reason) == ("revalidate", answer.explanation)


def superseded(operation: Operation) -> Operation:
    """Nobody is waited for: an attempt without a record is ``UNRECORDED`` from now on (L5)."""
    if not operation.reserved:
        return operation
    unrecorded = evolve(operation.latest, outcome=Outcome.UNRECORDED)
    return evolve(operation, attempts=(*operation.attempts[:-1], unrecorded), owner=None)


def decided_by_person(operation: Operation, decision: Decision) -> Operation:
    """Closed by a person: rejected, or attested as applied (R8)."""
    why = f"{decision.kind.value} by {decision.reviewer}"
    if decision.kind is DecisionKind.REJECTED:
        return closed_by(operation, Reason.REJECTED, why)
    return evolve(
        superseded(operation),
        disposition=Disposition.COMPLETE,
        reason=Reason.EFFECT_CONFIRMED.value,
        explanation=why,
        retry_at=None,
        evidence=Evidence.APPLIED,
        effect=decision.effect,
        history=with_attestation(operation.history, decision, Evidence.APPLIED),
        episode=None,
        looking_since=None,
    )


def with_attestation(history: History, decision: Decision, evidence: Evidence) -> History:
    """With what a person attested as evidence, once (R3)."""
    record = ObservationRecord(
        began=decision.decided_at,
        attempt=decision.attempt,
        source=f"person:{decision.reviewer}",
        proves_absence=False,
        evidence=evidence,
        code="ATTESTED",
        explanation=decision.note,
    )
    return history if record in history.last else history.plus(record)


def observable_from(attempt: AttemptRecord) -> datetime:
    """An attempt whose owner lives is left alone until its window is over (C5).

    A window of zero says that sending again is safe, not that the hook is quick: its timeout counts there.
    """
    assert attempt.started is not None
    return attempt.started + (attempt.window or attempt.timeout or _WINDOW_UNDECLARED)


def overtaken(stored: Operation, mine: Operation, made: AttemptRecord) -> Operation:
    """What another pass stored while this attempt went on, with how the attempt ended; the next pass decides.

    Only an effect that was seen is kept as what it is: forgotten, a later reversal could look like a reason to
    send again (O6).
    """
    merged = evolve(
        stored,
        attempts=(*stored.attempts[:-1], made),
        owner=None,
        disposition=None,
        reason=(Reason.PAUSED if was_paused(made) else Reason.OVERTAKEN).value,
        explanation="another pass looked at this attempt before it ended",
        retry_at=None,
        episode=None,
    )
    if mine.evidence is not Evidence.APPLIED:
        return merged
    return evolve(
        merged,
        disposition=mine.disposition,
        reason=mine.reason,
        explanation=mine.explanation,
        evidence=mine.evidence,
        effect=mine.effect,
        history=stored.history.plus(mine.history.last[-1]),
        looking_since=None,
    )


def late_evidence(mine: Operation, made: AttemptRecord) -> JSON:
    """What a pass that lost the operation knows of its own attempt (C2)."""
    return {
        "outcome": made.outcome.value if made.outcome else None,
        "ended": made.ended.isoformat() if made.ended else None,
        "failure": {"type": made.failure.type, "message": made.failure.message} if made.failure else None,
        "response": made.response,
        "evidence": mine.evidence.value if mine.evidence else None,
        "explanation": mine.explanation,
    }
