"""What gates in workflows send and are sent: names, messages, replies. It enters histories, and never changes.

Messages and replies are JSON objects with the wire's names: every SDK and the ``temporal`` program speak them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

from corrobo_core.gates import (
    Answer,
    ClaimOk,
    ClaimRefused,
    ClaimResult,
    GateRequest,
    GateStatus,
    GateView,
    ReleaseOk,
    ReleaseRefused,
    ReleaseResult,
    SubmitOk,
    SubmitRefused,
    SubmitResult,
)
from corrobo_core.records import JSON

__all__ = ["HISTORY", "MEMO", "PENDING", "REFUSALS", "SHOW", "SIGNAL", "UPDATES", "Message"]

UPDATES: Mapping[str, str] = {  # kind of message: update
    "claim": "corrobo_gate_claim",
    "submit": "corrobo_gate_submit",
    "release": "corrobo_gate_release",
    "release-claim": "corrobo_gate_release_claim",
}
SIGNAL = "corrobo_gate"
PENDING, SHOW, HISTORY, REFUSALS = (  # queries
    "corrobo_gate_pending",
    "corrobo_gate_show",
    "corrobo_gate_history",
    "corrobo_gate_refusals",
)
MEMO = "corrobo_gates"

_FIELDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {  # kind: required, optional
    "claim": (frozenset({"requestId", "routerId", "claimToken"}), frozenset({"leaseSeconds"})),
    "submit": (
        frozenset({"requestId", "routerId", "claimToken", "requestDigest", "response"}),
        frozenset({"actor"}),
    ),
    "release": (frozenset({"requestId", "claimToken"}), frozenset()),
    "release-claim": (frozenset({"requestId", "operator", "reason"}), frozenset()),
    "answer": (frozenset({"requestId", "routerId", "response"}), frozenset({"requestDigest", "actor"})),
}
_MAX_TEXT = {"requestId": 2_000, "reason": 1_000}
_MAX_LEASE = 10 * 366 * 86_400.0


@dataclass(frozen=True)
class Message:
    """One message of a router.

    Attributes:
        kind: ``claim``, ``submit``, ``release``, ``release-claim`` (an operator's), or ``answer``: claim and submit
            in one, for plain signals.
    """

    kind: str
    request_id: str
    router_id: str = ""
    claim_token: str = field(default="", repr=False)
    request_digest: str | None = None
    response: JSON = field(default=None, repr=False)
    actor: Mapping[str, JSON] | None = None
    lease: timedelta | None = None
    operator: str = ""
    reason: str = ""

    @classmethod
    def parse(cls, value: object, kind: str | None = None) -> Message:
        """Read a message.

        Args:
            value: decoded JSON.
            kind: what it must be; None: it says so itself.

        Raises:
            ValueError: it is no message; says why, and quotes nothing of it. Not retryable.
        """
        if not isinstance(value, Mapping):
            raise ValueError("a message is one JSON object")
        fields = dict(value)
        if kind is None:
            named = fields.pop("kind", None)
            kind = named if isinstance(named, str) else ""
        if kind not in _FIELDS:
            raise ValueError(f"kind: pass one of {', '.join(_FIELDS)}")
        required, optional = _FIELDS[kind]
        if not required <= fields.keys() <= required | optional:
            raise ValueError(f"missing or unknown fields; a {kind} has {', '.join(sorted(required))}")
        for name in (required | {"requestDigest"}) & fields.keys() - {"response"}:
            text = fields[name]
            if not (isinstance(text, str) and 0 < len(text) <= _MAX_TEXT.get(name, 200)):
                raise ValueError(f"{name}: pass text that is not empty and not too long")
        actor = fields.get("actor")
        if actor is not None and not isinstance(actor, Mapping):
            raise ValueError("actor: pass an object")
        return cls(
            kind,
            fields["requestId"],
            fields.get("routerId", ""),
            fields.get("claimToken", ""),
            fields.get("requestDigest"),
            fields.get("response"),
            actor,
            _lease(fields.get("leaseSeconds")),
            fields.get("operator", ""),
            fields.get("reason", ""),
        )

    def to_wire(self) -> dict[str, JSON]:
        """The message without its kind, as updates carry it."""
        wire: dict[str, JSON] = {
            "requestId": self.request_id,
            "routerId": self.router_id or None,
            "claimToken": self.claim_token or None,
            "requestDigest": self.request_digest,
            "actor": self.actor,
            "leaseSeconds": None if self.lease is None else self.lease.total_seconds(),
            "operator": self.operator or None,
            "reason": self.reason or None,
        }
        present: dict[str, JSON] = {name: value for name, value in wire.items() if value is not None}
        if self.kind in ("submit", "answer"):
            present["response"] = self.response
        return present


def _lease(seconds: object) -> timedelta | None:
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _MAX_LEASE:
        raise ValueError("leaseSeconds: pass a number of seconds above zero")
    return timedelta(seconds=seconds)


# -- replies -------------------------------------------------------------------------------------------------


def _answer_to_wire(answer: Answer | None) -> JSON:
    return None if answer is None else {"routerId": answer.router_id, "responseJson": answer.response_json}


def _answer_from_wire(wire: Any) -> Answer | None:
    return None if wire is None else Answer(wire["routerId"], wire["responseJson"])


def _time_to_wire(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _time_from_wire(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def reply_to_wire(result: ClaimResult | SubmitResult | ReleaseResult) -> dict[str, JSON]:
    """A result as the reply of an update."""
    match result:
        case ClaimOk():
            return {"ok": True, "claimToken": result.claim_token, "leaseUntil": _time_to_wire(result.lease_until)}
        case SubmitOk():
            return {"ok": True, "answer": _answer_to_wire(result.answer)}
        case ReleaseOk():
            return {"ok": True}
        case ClaimRefused():
            return {"ok": False, "kind": result.kind, "routerId": result.router_id}
        case SubmitRefused():
            return {
                "ok": False,
                "kind": result.kind,
                "reason": result.reason,
                "answer": _answer_to_wire(result.answer),
                "same": result.same,
                "late": result.late,
            }
        case _:
            return {"ok": False, "kind": result.kind}


def claim_reply(wire: Mapping[str, Any]) -> ClaimResult:
    """Read a claim's reply."""
    if wire["ok"]:
        return ClaimOk(wire["claimToken"], _time_from_wire(wire["leaseUntil"]))
    return ClaimRefused(wire["kind"], wire["routerId"])


def submit_reply(wire: Mapping[str, Any]) -> SubmitResult:
    """Read a submission's reply."""
    if wire["ok"]:
        return SubmitOk(cast("Answer", _answer_from_wire(wire["answer"])))
    answer = _answer_from_wire(wire["answer"])
    return SubmitRefused(wire["kind"], wire["reason"], answer, wire["same"], wire["late"])


def release_reply(wire: Mapping[str, Any]) -> ReleaseResult:
    """Read a release's reply."""
    return ReleaseOk() if wire["ok"] else ReleaseRefused(wire["kind"])


# -- views ---------------------------------------------------------------------------------------------------


def view_to_wire(view: GateView) -> dict[str, JSON]:
    """A view as queries answer it; without tokens (G12)."""
    return {
        "request": view.request.to_wire(),
        "status": view.status.value,
        "routerId": view.router_id,
        "leaseUntil": _time_to_wire(view.lease_until),
        "deadline": _time_to_wire(view.deadline),
        "answer": _answer_to_wire(view.answer),
        "late": [_answer_to_wire(answer) for answer in view.late],
        "supersededBy": view.superseded_by,
        "approval": view.approval,
    }


def view_from_wire(wire: Mapping[str, Any]) -> GateView:
    """Read a view back."""
    return GateView(
        GateRequest.from_wire(wire["request"]),
        GateStatus(wire["status"]),
        wire["routerId"],
        _time_from_wire(wire["leaseUntil"]),
        _time_from_wire(wire["deadline"]),
        _answer_from_wire(wire["answer"]),
        tuple(cast("Answer", _answer_from_wire(answer)) for answer in wire["late"]),
        wire["supersededBy"],
        wire["approval"],
    )
