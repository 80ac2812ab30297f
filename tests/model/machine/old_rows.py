"""Operations as older releases stored them: the columns of the oldest schema, and documents without later fields.

The oldest documents know neither episodes nor approvals, no lag and no ``responds_after_effect``; attempts were
recorded with another window than today's, or with none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from corrobo_core.canonical import fingerprint


@dataclass(frozen=True)
class OldAttempt:
    """The attempt that an older release left behind.

    Attributes:
        outcome: as recorded; None if its process died before.
        window: seconds, as recorded; None if none was declared.
        ago: seconds since it started.
    """

    outcome: str | None
    window: float | None
    ago: float


@dataclass(frozen=True)
class OldRow:
    """One row.

    Attributes:
        intent: with a note, which is not bound (I3).
        bound: the rest.
        started: of the attempt, which was reserved then.
        owner: a process that is long gone, where the attempt has no outcome.
    """

    namespace: str
    operation_id: str
    type: str
    intent: str
    bound: str
    attempt: OldAttempt
    started: datetime

    @property
    def _owner(self) -> int | None:
        return None if self.attempt.outcome else 4_711

    def document(self) -> dict[str, Any]:
        """Only what the first release wrote."""
        made = {"number": 1, "nonce": "old.1"}
        if self.attempt.window is not None:
            made["window_us"] = int(self.attempt.window * 1e6)
        document: dict[str, Any] = {"format": 1, "attempts": [made], "reason": "IN_PROGRESS"}
        if self.attempt.outcome is None:
            return document
        made |= {
            "started": self.started.isoformat(),
            "ended": (self.started + timedelta(seconds=1)).isoformat(),
            "outcome": self.attempt.outcome,
        }
        document |= {"disposition": "INVESTIGATE", "reason": "NOT_ESTABLISHED", "evidence": "UNKNOWN", "looks": 1}
        return document

    def columns(self) -> tuple[Any, ...]:
        """In the order of the oldest schema."""
        fields = (self.namespace, self.operation_id, self.type, fingerprint(self.bound), self.intent, 2)
        document = json.dumps(self.document(), separators=(",", ":"))
        return (*fields, self._owner, "old.2", self.started.isoformat(timespec="microseconds"), document)

    def fields(self) -> dict[str, Any]:
        """As ``from_row`` takes them."""
        return {
            "namespace": self.namespace,
            "operation_id": self.operation_id,
            "operation_type": self.type,
            "intent": self.intent,
            "fingerprint": fingerprint(self.bound),
            "version": 2,
            "owner": self._owner,
            "nonce": "old.2",
            "started": self.started,
            "document": self.document(),
        }
