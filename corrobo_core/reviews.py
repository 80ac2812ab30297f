"""Desks at which people decide. A desk can neither execute nor observe; a runner cannot decide (R1).

Source: semantics section 8.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from corrobo_core.binding import checked_id
from corrobo_core.canonical import check_intent, safe_text
from corrobo_core.commands import Decide, Decided, Load, NotDecided
from corrobo_core.contract import BaseEffect
from corrobo_core.errors import DecisionRefused, IntentError, UsageError
from corrobo_core.ledgers.ports import Ledger
from corrobo_core.records import (
    JSON,
    Decision,
    DecisionKind,
    Disposition,
    Evidence,
    Operation,
    OperationKey,
)
from corrobo_core.values import LOST

__all__ = ["AsyncReviewDesk", "DecisionRecorded", "ReviewDesk", "Waiting"]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a reviewer is shown: one operation, and the episode that waits for a decision, if one does.

    Attributes:
        operation_id: the operation.
        operation_type: such as ``payments/refund``.
        intent: canonical JSON text, which is what will be executed.
        intent_fingerprint: of it; pass it with the decision, to prove what was shown (R3).
        disposition: of the operation.
        evidence: what is known.
        reason: why, as the operation has it.
        explanation: one sentence.
        kind: ``REVIEW`` or ``INVESTIGATE``; None if nothing waits.
        token: what a decision must name; None if nothing waits.
        opened_at: ledger time; None if nothing waits.
    """

    operation_id: str
    operation_type: str
    intent: str
    intent_fingerprint: str
    disposition: Disposition | None
    evidence: Evidence | None
    reason: str
    explanation: str
    kind: Disposition | None = None
    token: str | None = None
    opened_at: datetime | None = None

    @classmethod
    def of(cls, operation: Operation) -> Waiting:
        """The view of one stored operation."""
        episode = operation.episode
        return cls(
            operation.key.operation_id,
            operation.key.type,
            operation.intent,
            operation.fingerprint,
            operation.disposition,
            operation.evidence,
            operation.reason,
            operation.explanation,
            episode.kind if episode else None,
            episode.token if episode else None,
            episode.opened_at if episode else None,
        )


@dataclass(frozen=True, slots=True)
class DecisionRecorded:
    """The decision stands. ``again``: the same one was recorded before, and nothing changed (R4)."""

    decision: Decision
    again: bool


@dataclass(frozen=True, slots=True)
class _Asked:
    """A decision, and the type of the only operation that it can be about, if it names one."""

    decision: Decide
    operation_type: str | None = None

    def refuse_another(self, operation: Operation | None) -> None:
        """An operation's type never changes: looked up before, it is still the same when the decision is made."""
        if operation is not None and operation.key.type != self.operation_type:
            raise IntentError("effect", f"is {self.operation_type}, and the operation is {operation.key.type}")


class _Desk:
    """What both desks share: what a decision must look like before it reaches the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def command(
        self,
        operation_id: str,
        kind: DecisionKind,
        token: str,
        reviewer: str,
        decided_at: datetime | None = None,
        expires_at: datetime | None = None,
        intent_fingerprint: str | None = None,
        note: str = "",
        effect: JSON = None,
    ) -> Decide:
        """The decision as the ledger is asked to record it, checked."""
        checked_id("review", "operation_id", operation_id)
        checked_id("review", "token", token)
        checked_id("review", "reviewer", reviewer)
        for name, time in (("decided_at", decided_at), ("expires_at", expires_at)):
            if time is not None and not (isinstance(time, datetime) and time.tzinfo is not None):
                raise IntentError(name, "must be a datetime with a time zone")
        check_intent(note, "note")
        return Decide(
            self.ledger.namespace,
            operation_id,
            token,
            kind,
            reviewer,
            decided_at,
            expires_at,
            intent_fingerprint,
            safe_text(note),
            effect,
        )

    def attestation(self, effect: object, value: object) -> JSON:
        """The stored form of an attested value, checked against the effect's return type (R3)."""
        if not isinstance(effect, BaseEffect):
            raise UsageError("applied", f"takes the effect, not a {type(effect).__name__}")
        value_type = effect.definition.effect_type
        stored = value_type.encode(value)
        if value_type.decode(stored) is LOST:
            raise IntentError("effect", f"a {type(value).__name__} is not what {effect.definition.type} returns")
        return stored

    def _load(self, operation_id: str) -> Load:
        return Load(OperationKey(self.ledger.namespace, operation_id, ""))


def _recorded(reply: Decided | NotDecided, operation_id: str) -> DecisionRecorded:
    if isinstance(reply, Decided):
        return DecisionRecorded(reply.decision, reply.again)
    operation, first = reply.operation, reply.first
    raise DecisionRefused(
        operation_id,
        reply.code.value,
        operation.disposition.value if operation and operation.disposition else None,
        first.kind.value if first else None,
        first.reviewer if first else None,
    )


# -- what can be decided: one function for both desks ---------------------------------------------------------


def _approved(
    desk: _Desk,
    operation_id: str,
    *,
    token: str,
    reviewer: str,
    decided_at: datetime | None = None,
    expires_at: datetime | None = None,
    intent_fingerprint: str | None = None,
    note: str = "",
) -> _Asked:
    """Approve the attempt that the episode asks about.

    Args:
        desk: this desk.
        operation_id: the operation.
        token: the episode's, from `show` or the error that said what waits.
        reviewer: who decides; not empty.
        decided_at: aware; the ledger's clock if not given.
        expires_at: aware; the approval counts no more from then on (R5).
        intent_fingerprint: what the reviewer was shown; refused if the operation is another (R3).
        note: for people.

    Raises:
        DecisionRefused: it does not count; nothing is recorded (R4).
    """
    return _Asked(
        desk.command(
            operation_id, DecisionKind.APPROVED, token, reviewer, decided_at, expires_at, intent_fingerprint, note
        )
    )


def _rejected(
    desk: _Desk,
    operation_id: str,
    *,
    token: str,
    reviewer: str,
    decided_at: datetime | None = None,
    intent_fingerprint: str | None = None,
    note: str = "",
) -> _Asked:
    """Close the operation without another attempt (R8). Arguments and errors as for ``approved``."""
    return _Asked(
        desk.command(
            operation_id, DecisionKind.REJECTED, token, reviewer, decided_at, None, intent_fingerprint, note
        )
    )


def _applied(
    desk: _Desk,
    effect: BaseEffect[Any, R],
    operation_id: str,
    value: R,
    *,
    token: str,
    reviewer: str,
    decided_at: datetime | None = None,
    note: str = "",
) -> _Asked:
    """Attest that the effect is there, with this value: the operation completes (R8).

    Raises:
        IntentError: the operation is another effect's, or the value not of its return type. Not retryable.
        DecisionRefused: it does not count; nothing is recorded (R4).
    """
    stored = desk.attestation(effect, value)
    decision = desk.command(
        operation_id, DecisionKind.APPLIED, token, reviewer, decided_at, note=note, effect=stored
    )
    return _Asked(decision, effect.definition.type)


def _not_applied(
    desk: _Desk,
    operation_id: str,
    *,
    token: str,
    reviewer: str,
    decided_at: datetime | None = None,
    note: str = "",
) -> _Asked:
    """Attest that no attempt so far has had its effect: one more may be made, after one more read (R8).

    Raises:
        DecisionRefused: it does not count; nothing is recorded (R4).
    """
    return _Asked(desk.command(operation_id, DecisionKind.NOT_APPLIED, token, reviewer, decided_at, note=note))


def _revoke(desk: _Desk, operation_id: str, *, token: str, reviewer: str, note: str = "") -> _Asked:
    """Take back an approval that no attempt has used (R3).

    Raises:
        DecisionRefused: it does not count; nothing is recorded (R4).
    """
    return _Asked(desk.command(operation_id, DecisionKind.REVOKED, token, reviewer, note=note))


def _now(build: Callable[Concatenate[_Desk, P], _Asked]) -> Callable[Concatenate[ReviewDesk, P], DecisionRecorded]:
    @wraps(build)
    def decide(desk: ReviewDesk, /, *args: P.args, **kwargs: P.kwargs) -> DecisionRecorded:
        asked = build(desk, *args, **kwargs)
        operation_id = asked.decision.operation_id
        if asked.operation_type is not None:
            asked.refuse_another(desk.ledger.perform(desk._load(operation_id)).operation)
        return _recorded(desk.ledger.perform(asked.decision), operation_id)

    return decide


def _async(
    build: Callable[Concatenate[_Desk, P], _Asked],
) -> Callable[Concatenate[AsyncReviewDesk, P], Coroutine[Any, Any, DecisionRecorded]]:
    @wraps(build)
    async def decide(desk: AsyncReviewDesk, /, *args: P.args, **kwargs: P.kwargs) -> DecisionRecorded:
        asked = build(desk, *args, **kwargs)
        operation_id = asked.decision.operation_id
        if asked.operation_type is not None:
            asked.refuse_another((await desk.ledger.perform_async(desk._load(operation_id))).operation)
        return _recorded(await desk.ledger.perform_async(asked.decision), operation_id)

    return decide


class ReviewDesk(_Desk):
    """Records what people decide about operations that wait for them. It never executes and never observes.

    Args:
        ledger: with the reviewer's database role where there are roles (R1). It does not authenticate
            reviewers; it records who the application says they are (R9).
    """

    def show(self, operation_id: str) -> Waiting | None:
        """The operation as a reviewer sees it; None if there is none."""
        operation = self.ledger.perform(self._load(operation_id)).operation
        return Waiting.of(operation) if operation else None

    approved = _now(_approved)
    rejected = _now(_rejected)
    applied = _now(_applied)
    not_applied = _now(_not_applied)
    revoke = _now(_revoke)


class AsyncReviewDesk(_Desk):
    """`ReviewDesk` for an event loop."""

    async def show(self, operation_id: str) -> Waiting | None:
        """`ReviewDesk.show`."""
        operation = (await self.ledger.perform_async(self._load(operation_id))).operation
        return Waiting.of(operation) if operation else None

    approved = _async(_approved)
    rejected = _async(_rejected)
    applied = _async(_applied)
    not_applied = _async(_not_applied)
    revoke = _async(_revoke)
