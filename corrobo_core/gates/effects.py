"""The gates of effects: what people are asked about an operation that waits for them, and what their answers mean.

Pure, and shared by the engines: the same episode is the same question everywhere.

Source: semantics R2, R3, A6.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from corrobo_core.gates.approvals import ApprovalSubject, ArtifactReference, RunPlan, create_approval_gate
from corrobo_core.gates.definition import GateDefinition, GateRequest, create_gate
from corrobo_core.gates.jsontext import sha256
from corrobo_core.records import JSON, DecisionKind, Disposition, Operation

__all__ = [
    "EFFECT_PLAN",
    "INVESTIGATION",
    "REVIEW",
    "EffectGate",
    "EffectQuestion",
    "decision_kind",
    "effect_gate",
    "effect_question",
]

REVIEW = "effect-review"
"""The gate of reviews. An answer is ``{"kind": "allow"}``, or ``{"kind": "deny", "reason": …}``."""

INVESTIGATION = "effect-investigation"
"""The gate of investigations. An answer is ``{"kind": "applied", "value": …}``, or ``{"kind": "not_applied"}``."""

_VERSION = 1
_DIGEST = "sha256:" + sha256("corrobo effect review 1")
EFFECT_PLAN = RunPlan(_DIGEST, _DIGEST)
"""The plan of every review of an effect: what is bound is the operation, by the subject."""

_SHOWN = 32_768  # characters of intent that a question shows; a review desk shows all of it

_REVIEW_SCHEMA: dict[str, JSON] = {
    "type": "object",
    "properties": {"kind": {"enum": ["allow", "deny"]}, "reason": {"type": "string", "minLength": 1}},
    "required": ["kind"],
    "additionalProperties": False,
}
_INVESTIGATION_SCHEMA: dict[str, JSON] = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["applied", "not_applied"]},
        "value": True,
        "note": {"type": "string"},
    },
    "required": ["kind"],
    "additionalProperties": False,
}
_DECISIONS = {
    "allow": DecisionKind.APPROVED,
    "deny": DecisionKind.REJECTED,
    "applied": DecisionKind.APPLIED,
    "not_applied": DecisionKind.NOT_APPLIED,
}


@dataclass(frozen=True)
class EffectGate:
    """A question about one episode, ready to be posted; ``subject`` for reviews only."""

    request: GateRequest
    subject: ApprovalSubject | None


@dataclass(frozen=True)
class EffectQuestion:
    """What a posted question is about.

    Attributes:
        kind: ``REVIEW`` or ``INVESTIGATE``.
        operation_type: such as ``payments/refund``.
        operation_id: the operation.
        token: of the episode; the decision names it.
        fingerprint: of the intent that is shown.
    """

    kind: Disposition
    operation_type: str
    operation_id: str
    token: str
    fingerprint: str


def effect_gate(operation: Operation, asked: int = 1) -> EffectGate | None:
    """The question for the episode that an operation has open; None if it has none.

    Args:
        operation: as stored.
        asked: 1, and one more for each time that an answer to this very question did not reach the review desk.

    Source: semantics A6.
    """
    episode = operation.episode
    if episode is None:
        return None
    key, review = operation.key, episode.kind is Disposition.REVIEW
    question = f"May {key.type} {key.operation_id!r} be sent?" if review else f"Did {key.type} happen?"
    definition = GateDefinition(
        gate_id=REVIEW if review else INVESTIGATION,
        gate_version=_VERSION,
        decision_text=question if review else f"{question} It is {key.operation_id!r}.",
        response_schema=_REVIEW_SCHEMA if review else _INVESTIGATION_SCHEMA,
        input={
            "operationType": key.type,
            "operationId": key.operation_id,
            "token": episode.token,
            "fingerprint": operation.fingerprint,
            "asked": asked,
        },
        presentation=_hints(operation),
    )
    if not review:
        return EffectGate(create_gate(definition), None)
    subject = _subject(operation, episode.token)
    return EffectGate(create_approval_gate(definition, subject), subject)


def _subject(operation: Operation, token: str) -> ApprovalSubject:
    intent = operation.intent.encode()
    reference = ArtifactReference.of(intent, "application/json")
    scope = {"operationType": operation.key.type, "operationId": operation.key.operation_id, "token": token}
    return ApprovalSubject({"intent": reference.digest}, scope, reference, intent)


def _hints(operation: Operation) -> dict[str, JSON]:
    hints: dict[str, JSON] = {"reason": operation.reason, "explanation": operation.explanation}
    if len(operation.intent) <= _SHOWN:
        hints["intent"] = json.loads(operation.intent)
    return hints


def effect_question(request: GateRequest) -> EffectQuestion | None:
    """What a request asks, if it is one that `effect_gate` made; None for every other."""
    kinds = {REVIEW: Disposition.REVIEW, INVESTIGATION: Disposition.INVESTIGATE}
    given = request.input
    if request.gate_id not in kinds or not isinstance(given, Mapping):
        return None
    named = [given.get(name) for name in ("operationType", "operationId", "token", "fingerprint")]
    if not all(isinstance(part, str) for part in named):
        return None
    return EffectQuestion(kinds[request.gate_id], *cast("list[str]", named))


def decision_kind(response: Mapping[str, JSON]) -> DecisionKind:
    """The decision that an answer to an effect's question is."""
    return _DECISIONS[str(response["kind"])]
