"""What the machine of gates asks, and the calls that it makes: of a client, and of the oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeAlias
from unittest.mock import patch

from corrobo_core.errors import CorroboError
from corrobo_core.gates import GateDefinition, GateRequest, Gates, base, create_gate
from corrobo_core.gates.approvals import (
    ACTION_DECISION_SCHEMA,
    ApprovalSubject,
    ArtifactReference,
    Permission,
    RunPlan,
    create_approval_gate,
)
from corrobo_core.gates.routers import direct_router
from tests.gates.support import DEFINITION, NO, YES
from tests.model.machine.desk import Desk, Question, Reply

# -- what is asked -----------------------------------------------------------------------------------------------

EXAMPLE = "release-approval#1#3a32b8f32a48c2b1ddc28ecec2c3035d4619311acf96364200e8c25efe94cd05"
_WRITE = Permission("fs:write")
PLAN = RunPlan("sha256:" + "a" * 64, "sha256:" + "b" * 64, 1, [_WRITE])
SUBJECT = ApprovalSubject(
    input_artifact_hashes={"order.json": "sha256:" + "1" * 64},
    proof_scope={"checks": ["limits"]},
    proof_artifact=ArtifactReference.of(b"proof", "application/json"),
    proposed_output=b"refund 50.00",
    effective_permissions=[_WRITE],
    workspace_anchor=None,
)
CHANGED = replace(SUBJECT, proposed_output=b"refund 5000.00")
_PLAIN = {
    f"{gate}/{revision}": create_gate(replace(DEFINITION, gate_id=gate, input={"revision": revision}))
    for gate in ("gate-1", "gate-2")
    for revision in ("a", "b")
}
APPROVALS = {
    f"refund/{order}": create_approval_gate(
        GateDefinition("refund", 1, "Refund it?", ACTION_DECISION_SCHEMA, {"order": order}), SUBJECT
    )
    for order in ("a", "b")
}
REQUESTS: dict[str, GateRequest] = {**_PLAIN, **APPROVALS}
NAMES = {request.request_id: name for name, request in REQUESTS.items()}
ALLOW = {"kind": "allow"}
DENY = {"kind": "deny", "reason": "too much"}
ADA, BOB = {"name": "ada"}, {"name": "bob"}


def _is_answer(response: Any) -> bool:
    return response in (YES, NO) and isinstance(response["approved"], bool)


def _is_decision(response: Any) -> bool:
    return response in (ALLOW, DENY)


def remembered(name: str) -> Question:
    approval = name in APPROVALS
    return Question(REQUESTS[name].gate_id, _is_decision if approval else _is_answer, approval)


# -- what is done ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Act:
    """One call of a client: how it is made, and how the oracle is told."""

    name: str
    arguments: tuple[Any, ...]

    def on(self, client: Gates) -> Any:
        """What the client answers, as the oracle would say it."""
        try:
            return _said(_CALLS[self.name](client, *self.arguments))
        except (CorroboError, NoAnswer) as error:
            return (type(error).__name__,)

    def on_desk(self, desk: Desk, now: Any) -> Reply:
        """What it must answer."""
        reply: Reply = getattr(desk, self.name)(now, *self.arguments)
        return reply


class NoAnswer(Exception):
    """What a router's function raises."""


def _route(client: Gates, name: str, router: str, token: str, response: Any, actor: Any) -> Any:
    def ask(request: GateRequest) -> Any:
        if response == "raises":
            raise NoAnswer
        return response

    with patch.object(base, "new_token", lambda: token):
        return direct_router(client, REQUESTS[name], router, ask, actor=actor)


def _post(client: Gates, name: str, wait: timedelta | None, reopen: bool) -> Any:
    subject = SUBJECT if name in APPROVALS else None
    return client.post(REQUESTS[name], subject, deadline=wait, reopen=reopen)


def _submit(client: Gates, name: str, token: str, router: str, right: bool, response: Any, actor: Any) -> Any:
    digest = REQUESTS[name].digest if right else "0" * 64
    return client.submit(REQUESTS[name].request_id, token, router, digest, response, actor=actor)


_CALLS: dict[str, Callable[..., Any]] = {
    "post": _post,
    "claim": lambda c, name, router, token, lease: c.claim(
        REQUESTS[name].request_id, router, claim_token=token, lease=lease
    ),
    "submit": _submit,
    "release": lambda c, name, token: c.release(REQUESTS[name].request_id, token),
    "release_claim": lambda c, name: c.release_claim(REQUESTS[name].request_id, operator="ada", reason="stuck"),
    "supersede": lambda c, name, by: c.supersede(REQUESTS[name].request_id, REQUESTS[by].request_id),
    "expire": lambda c: c.expire(),
    "route": _route,
}


def _said(result: Any) -> tuple[Any, ...]:
    """A result with only what the oracle speaks of."""
    kind = type(result).__name__
    match kind:
        case "PostOk":
            pushed = tuple(sorted(NAMES[each] for each in result.superseded))
            return kind, result.created, result.status.value, pushed
        case "ClaimOk":
            return kind, result.claim_token, result.lease_until
        case "ClaimRefused":
            return kind, result.kind, result.router_id
        case "SubmitOk":
            return kind, result.answer.router_id, result.answer.response
        case "SubmitRefused":
            return kind, result.kind, result.same, result.late
        case "ExpireOk":
            return kind, tuple(sorted(NAMES[each] for each in result.request_ids))
        case "ReleaseOk" | "SupersedeOk":
            return (kind,)
        case _:
            return kind, result.kind


@dataclass(frozen=True)
class NotAnswered:
    """The ledger does not answer the append; it was recorded all the same if ``recorded``."""

    recorded: bool


@dataclass(frozen=True)
class Again:
    """The reply to the append is lost, and the ledger repeats it."""


@dataclass(frozen=True)
class Pause:
    """Time passes between reading and appending, in seconds."""

    seconds: int


Between: TypeAlias = "NotAnswered | Again | Pause | Act | None"
