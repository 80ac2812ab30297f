"""How a person's decision is stored, by every SQL ledger.

Source: semantics R3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from corrobo_core.errors import LedgerCorruptError
from corrobo_core.ledgers.document import DAMAGED, of, read_time
from corrobo_core.records import Decision, DecisionKind

__all__ = ["from_document", "read_decisions", "to_document"]


def to_document(decision: Decision) -> str:
    """The decision's JSON text."""
    fields = {
        "token": decision.token,
        "kind": decision.kind,
        "reviewer": decision.reviewer,
        "decided_at": decision.decided_at.isoformat(),
        "expires_at": decision.expires_at.isoformat() if decision.expires_at else None,
        "intent_fingerprint": decision.intent_fingerprint,
        "note": decision.note or None,
        "effect": decision.effect,
        "attempt": decision.attempt,
    }
    return json.dumps({name: value for name, value in fields.items() if value is not None}, allow_nan=False)


def from_document(fields: Mapping[str, Any]) -> Decision:
    """The decision that a document holds. Raises one of `DAMAGED` on a damaged one."""
    expires = fields.get("expires_at")
    return Decision(
        token=of(str, fields["token"]),
        kind=DecisionKind(fields["kind"]),
        reviewer=of(str, fields["reviewer"]),
        decided_at=read_time(fields["decided_at"]),
        expires_at=read_time(expires) if expires else None,
        intent_fingerprint=fields.get("intent_fingerprint"),
        note=of(str, fields.get("note", "")),
        effect=fields.get("effect"),
        attempt=of(int, fields["attempt"]),
    )


def read_decisions(ledger: str, operation_id: str, text: str | None) -> tuple[Decision, ...]:
    """All decisions about one operation, oldest first, from a JSON array or null.

    Raises:
        LedgerCorruptError: one of them does not read back. Not retryable.
    """
    try:
        documents: Sequence[Mapping[str, Any]] = json.loads(text) if text else ()
        return tuple(from_document(document) for document in documents)
    except DAMAGED as error:
        raise LedgerCorruptError(
            ledger,
            f"operation {operation_id!r}: a decision about it does not read back ({type(error).__name__});"
            " nothing was sent. Look at the row by hand",
        ) from None
