"""Which decisions of people are recorded, and which are in force. Pure.

Source: semantics R3, R4, R5, R8.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from corrobo_core.commands import Decide
from corrobo_core.frozen import frozen
from corrobo_core.policy import Policy
from corrobo_core.records import AttemptRecord, Decision, DecisionKind, Disposition, Operation, Outcome, RefusalCode

__all__ = [
    "Approval",
    "Refusal",
    "approval_in_force",
    "decision_on",
    "grant_in_force",
    "judge",
    "was_approved",
]

_ANSWERS = {
    Disposition.REVIEW: (DecisionKind.APPROVED, DecisionKind.REJECTED),
    Disposition.INVESTIGATE: (DecisionKind.APPLIED, DecisionKind.NOT_APPLIED),
}


def decision_on(token: str, decisions: Sequence[Decision]) -> Decision | None:
    """The decision on one episode; a revocation counts as none."""
    first = next((d for d in decisions if d.token == token), None)
    revoked = any(d.token == token and d.kind is DecisionKind.REVOKED for d in decisions)
    return None if revoked else first


def was_approved(token: str, decisions: Sequence[Decision]) -> bool:
    """Whether the episode was ever approved, also if the approval has lapsed or was revoked."""
    return any(d.token == token and d.kind is DecisionKind.APPROVED for d in decisions)


@frozen
class Approval:
    """An approval in force, and the ledger time at which it ends, if it does."""

    decision: Decision
    until: datetime | None


def approval_in_force(
    operation: Operation, decisions: Sequence[Decision], policy: Policy, now: datetime
) -> Approval | None:
    """The approval of the latest review: still this intent, not revoked, not expired, not too old (R5)."""
    if operation.review is None:
        return None
    decision = decision_on(operation.review.token, decisions)
    if decision is None or decision.kind is not DecisionKind.APPROVED:
        return None
    if decision.intent_fingerprint not in (None, operation.fingerprint):
        return None
    ends = [] if decision.expires_at is None else [decision.expires_at]
    if policy.max_approval_age is not None:
        ends.append(decision.decided_at + policy.max_approval_age)
    until = min(ends, default=None)
    return None if until is not None and now >= until else Approval(decision, until)


def grant_in_force(attempts: Sequence[AttemptRecord], decisions: Sequence[Decision]) -> Decision | None:
    """A person's ``not_applied`` about every attempt that may have been sent: it allows one more (R8)."""
    grants = [d for d in decisions if d.kind is DecisionKind.NOT_APPLIED]
    if not grants:
        return None
    sent = [a.number for a in attempts if a.outcome is not Outcome.NOT_SENT]
    if not attempts or grants[-1].attempt < max(sent, default=0):
        return None
    return grants[-1]


@frozen
class Refusal:
    """Why a decision is not recorded; ``first`` is the one that was recorded before."""

    code: RefusalCode
    first: Decision | None = None


def judge(
    operation: Operation | None, decisions: Sequence[Decision], asked: Decide, now: datetime
) -> Decision | Refusal:
    """The decision to append; or the recorded one, where this says the same; or why not (R4)."""
    if operation is None:
        return Refusal(RefusalCode.NOT_AWAITING_DECISION)
    if asked.kind is DecisionKind.REVOKED:
        return _judge_revocation(operation, decisions, asked, now)
    first = next((d for d in decisions if d.token == asked.token), None)
    if first is not None:
        return first if _says_the_same(first, asked) else Refusal(RefusalCode.ALREADY_DECIDED, first)
    episode = operation.episode
    if episode is None:
        return Refusal(RefusalCode.NOT_AWAITING_DECISION)
    if episode.token != asked.token:
        return Refusal(RefusalCode.STALE_TOKEN)
    if asked.kind not in _ANSWERS[episode.kind]:
        return Refusal(RefusalCode.NOT_AWAITING_DECISION)
    if asked.decided_at is not None and asked.decided_at < episode.opened_at:
        return Refusal(RefusalCode.DECIDED_BEFORE_OPENED)
    if asked.intent_fingerprint not in (None, operation.fingerprint):
        return Refusal(RefusalCode.INTENT_MISMATCH)
    if asked.expires_at is not None and asked.expires_at <= now:
        return Refusal(RefusalCode.ALREADY_EXPIRED)
    return _decision(operation, asked, now)


def _judge_revocation(
    operation: Operation, decisions: Sequence[Decision], asked: Decide, now: datetime
) -> Decision | Refusal:
    about = [d for d in decisions if d.token == asked.token]
    if not about or about[0].kind is not DecisionKind.APPROVED:
        return Refusal(RefusalCode.NOT_AWAITING_DECISION)
    if about[-1].kind is DecisionKind.REVOKED:
        same = about[-1].reviewer == asked.reviewer
        return about[-1] if same else Refusal(RefusalCode.ALREADY_DECIDED, about[-1])
    used = any(isinstance(a.approval, dict) and a.approval["token"] == asked.token for a in operation.attempts)
    return Refusal(RefusalCode.ALREADY_USED, about[0]) if used else _decision(operation, asked, now)


def _says_the_same(first: Decision, asked: Decide) -> bool:
    return (first.kind, first.reviewer, first.effect, first.expires_at) == (
        asked.kind,
        asked.reviewer,
        asked.effect,
        asked.expires_at,
    )


def _decision(operation: Operation, asked: Decide, now: datetime) -> Decision:
    return Decision(
        token=asked.token,
        kind=asked.kind,
        reviewer=asked.reviewer,
        # Nobody decides after it is recorded: an approval of tomorrow would age too late (R5).
        decided_at=now if asked.decided_at is None else min(asked.decided_at, now),
        expires_at=asked.expires_at,
        intent_fingerprint=asked.intent_fingerprint,
        note=asked.note,
        effect=asked.effect,
        attempt=operation.latest.number if operation.attempts else 0,
    )
