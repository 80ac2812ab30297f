"""What must never be, told from the outside world and what people said, never from the library's own record."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from corrobo_core.records import Decision, DecisionKind, Disposition, Evidence, Operation, Reason
from tests.model.explorer.outside import LANDED, PENDING, effects, possible
from tests.model.explorer.state import Going, State


def holding(state: State, row: Operation | None) -> str | None:
    """The rule that a state breaks; None: none."""
    if possible(state.requests) > 1:
        return "two effects: both requests can land"
    if row is None:
        return None
    if row.disposition is Disposition.COMPLETE and not effects(state.requests):
        return "COMPLETE, and the effect is not there"
    if row.evidence is Evidence.APPLIED and not effects(state.requests):
        return "says APPLIED, and the effect is not there"
    if row.closed and row.reason == Reason.PROVIDER_REFUSED and possible(state.requests):
        return "closed as refused, and an effect is there or can still land"
    return None


def sending(
    state: State, going: Going, operation: Operation, decisions: Sequence[Decision], oldest: timedelta | None
) -> str | None:
    """The rule that sending now breaks; None: none. ``oldest``: no approval counts longer."""
    for request in state.requests:
        if request.state == LANDED:
            return "sends, and the effect of an earlier attempt is there"
        if request.state == PENDING and state.now <= request.declared:
            return "sends while an earlier attempt can still land"
    if state.requests and not going.cleared:
        return "sends without having read after everything had settled"
    return _approval(operation, decisions, oldest)


def _approval(operation: Operation, decisions: Sequence[Decision], oldest: timedelta | None) -> str | None:
    """``authorize`` always asks for a review here: the attempt needs an approval that held when it began (R5)."""
    if operation.authorized is None:
        return None
    attempt, approval = operation.latest, operation.latest.approval
    if not isinstance(approval, dict):
        return "sends without an approval"
    about = [decision for decision in decisions if decision.token == approval["token"]]
    assert attempt.started is not None
    if not about or about[0].kind is not DecisionKind.APPROVED:
        return "sends under an approval that nobody gave"
    if any(decision.kind is DecisionKind.REVOKED for decision in about):
        return "sends under an approval that was revoked"
    if about[0].expires_at is not None and attempt.started >= about[0].expires_at:
        return "sends under an approval that had expired"
    if oldest is not None and attempt.started >= about[0].decided_at + oldest:
        return "sends under an approval that was too old"
    return None
