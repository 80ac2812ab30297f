"""The outcome of an effect as the data that DBOS checkpoints, and back.

Plain JSON values only: any serializer stores them, and no class of ours must be found to read them again. The
keys are compatibility data; a reader refuses a version that it does not know.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from corrobo_core import Disposition, EffectResult, Evidence
from corrobo_core.definition import Definition
from corrobo_core.values import LOST
from corrobo_dbos.failures import CheckpointError

__all__ = ["VERSION", "checkpoint_of", "result_from"]

VERSION = 1


def checkpoint_of(result: EffectResult[Any], definition: Definition) -> dict[str, Any]:
    """The data that stands for a finished effect in the workflow's history."""
    confirmed = result.disposition is Disposition.COMPLETE and not result.value_lost
    return {
        "corrobo": VERSION,
        "type": result.operation_type,
        "id": result.operation_id,
        "disposition": None if result.disposition is None else result.disposition.value,
        "evidence": None if result.evidence is None else result.evidence.value,
        "reason": result.reason,
        "explanation": result.explanation,
        "retry_at": None if result.retry_at is None else result.retry_at.isoformat(),
        "now": result.now.isoformat(),
        "token": result.token,
        "effect": definition.effect_type.encode(result.effect) if confirmed else None,
        "value_lost": result.value_lost,
    }


def result_from(checkpoint: object, definition: Definition, operation_id: str, step: str) -> EffectResult[Any]:
    """The outcome that a step returned, now or before a restart, if it belongs to this operation.

    The value is decoded in both cases, so that workflow code sees the same one on every replay.

    Raises:
        CheckpointError: it belongs to another operation, or is not ours. Not retryable.
    """
    if not isinstance(checkpoint, dict) or "corrobo" not in checkpoint:
        raise CheckpointError(step, operation_id, "its checkpoint was not made by an effect step")
    if checkpoint["corrobo"] != VERSION:
        known = f"this release reads version {VERSION}"
        raise CheckpointError(step, operation_id, f"its checkpoint has version {checkpoint['corrobo']}; {known}")
    found = (checkpoint["type"], checkpoint["id"])
    if found != (definition.type, operation_id):
        recorded = f"its checkpoint holds the outcome of {found[0]} {found[1]!r}"
        raise CheckpointError(step, operation_id, f"{recorded}; the workflow is not deterministic")
    confirmed = checkpoint["disposition"] == Disposition.COMPLETE and not checkpoint["value_lost"]
    effect = definition.effect_type.decode(checkpoint["effect"]) if confirmed else None
    return EffectResult(
        definition.type,
        operation_id,
        disposition=None if checkpoint["disposition"] is None else Disposition(checkpoint["disposition"]),
        evidence=None if checkpoint["evidence"] is None else Evidence(checkpoint["evidence"]),
        reason=checkpoint["reason"],
        explanation=checkpoint["explanation"],
        retry_at=None if checkpoint["retry_at"] is None else datetime.fromisoformat(checkpoint["retry_at"]),
        now=datetime.fromisoformat(checkpoint["now"]),
        token=checkpoint["token"],
        effect=None if effect is LOST else effect,
        value_lost=bool(checkpoint["value_lost"]) or effect is LOST,
    )
