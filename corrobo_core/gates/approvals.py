"""Approvals bound to exact bytes: a change of what was approved is another request, and an approval of something
else is none.

Source: semantics section 10.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from corrobo_core.gates.definition import GateDefinition, GateRequest, create_gate
from corrobo_core.gates.errors import ApprovalSubjectError, GateArgumentError, GateError, GateValueError
from corrobo_core.gates.jsontext import canonical, is_digest, plain_text, sha256
from corrobo_core.gates.state import GateState, GateStatus
from corrobo_core.records import JSON

__all__ = [
    "ACTION_DECISION_SCHEMA",
    "ActionDecision",
    "ApprovalSubject",
    "ArtifactReference",
    "Permission",
    "RunPlan",
    "approval_record",
    "check_subject",
    "create_approval_gate",
    "resolve_approval",
    "subject_digest_of",
]

_SUBJECT_DIGEST = "approvalSubjectDigest"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*")
_RECORD_VERSION = 1
NO_PLAN = "approvals are bound to the run's plan: make the client with plan=RunPlan(…)"

ACTION_DECISION_SCHEMA: Mapping[str, JSON] = {
    "type": "object",
    "properties": {"kind": {"enum": ["allow", "wait", "deny"]}, "reason": {"type": "string", "minLength": 1}},
    "required": ["kind"],
}
"""A response schema that every action decision meets. `ActionDecision.parse` is stricter."""


# -- what is approved ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Permission:
    """One permission, with its scope as any JSON."""

    name: str
    scope: JSON = None

    def to_wire(self) -> dict[str, JSON]:
        """With the wire's names."""
        return {"name": self.name, "scope": self.scope}


@dataclass(frozen=True)
class ArtifactReference:
    """Names stored bytes by their digest.

    Attributes:
        digest: ``sha256:`` and 64 lowercase hex digits.
        byte_length: how many bytes.
        media_type: such as ``application/json``.
        purpose: what they are for; a proof's is ``proof-packet``.
    """

    digest: str
    byte_length: int
    media_type: str = "application/octet-stream"
    purpose: str = "proof-packet"

    @classmethod
    def of(
        cls, content: bytes, media_type: str = "application/octet-stream", purpose: str = "proof-packet"
    ) -> ArtifactReference:
        """The reference to some bytes."""
        return cls(_digest_of(content), len(content), media_type, purpose)

    def to_wire(self) -> dict[str, JSON]:
        """With the wire's names."""
        return {
            "schemaVersion": 1,
            "digest": self.digest,
            "byteLength": self.byte_length,
            "mediaType": self.media_type,
            "purpose": self.purpose,
        }


@dataclass(frozen=True)
class ApprovalSubject:
    """Everything that an approval is for, to the byte (A1).

    Args:
        input_artifact_hashes: name to ``sha256:…`` of each input.
        proof_scope: what the proof covers.
        proof_artifact: where the proof is.
        proposed_output: the bytes that are to be applied; kept as their digest.
        effective_permissions: what applying them may use.
        workspace_anchor: the workspace state that they are for, or None.

    Raises:
        GateArgumentError, GateValueError: a part is malformed. Not retryable.

    Source: semantics A1.
    """

    input_artifact_hashes: Mapping[str, str]
    proof_scope: Mapping[str, JSON]
    proof_artifact: ArtifactReference
    proposed_output: bytes = field(repr=False)
    effective_permissions: Sequence[Permission] = ()
    workspace_anchor: Mapping[str, JSON] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.proposed_output, bytes):
            raise GateArgumentError("proposed_output", "pass bytes")
        for name in ("input_artifact_hashes", "proof_scope"):
            if not isinstance(getattr(self, name), Mapping):
                raise GateArgumentError(name, "pass a mapping")
        if self.workspace_anchor is not None and not isinstance(self.workspace_anchor, Mapping):
            raise GateArgumentError("workspace_anchor", "pass a mapping or None")
        for label, digest in self.input_artifact_hashes.items():
            _checked_digest(digest, f"input_artifact_hashes[{label!r}]")
        _check_proof(self.proof_artifact)
        for permission in self.effective_permissions:
            plain_text(permission.name, "effective_permissions.name")
        self.to_json()

    def to_json(self) -> str:
        """Canonical JSON text, with the proposed output as its digest."""
        return canonical(
            {
                "workspaceAnchor": self.workspace_anchor,
                "inputArtifactHashes": self.input_artifact_hashes,
                "proofScope": self.proof_scope,
                "proofArtifact": self.proof_artifact.to_wire(),
                "proposedOutputDigest": _digest_of(self.proposed_output),
                "effectivePermissions": [permission.to_wire() for permission in self.effective_permissions],
            },
            "subject",
        )

    @property
    def digest(self) -> str:
        """``sha256:…`` over `to_json`; it enters the request's input."""
        return "sha256:" + sha256(self.to_json())


@dataclass(frozen=True)
class RunPlan:
    """What a run was started to do: an approval holds for this plan and graph only (A2, A5).

    Attributes:
        plan_digest: ``sha256:…`` of the resolved plan.
        graph_digest: ``sha256:…`` of the graph's definition.
        graph_type_version: 1 or more.
        admitted: the permissions that the plan admits.
    """

    plan_digest: str
    graph_digest: str
    graph_type_version: int = 1
    admitted: Sequence[Permission] = ()

    def __post_init__(self) -> None:
        _checked_digest(self.plan_digest, "plan_digest")
        _checked_digest(self.graph_digest, "graph_digest")
        if isinstance(self.graph_type_version, bool) or self.graph_type_version < 1:
            raise GateArgumentError("graph_type_version", "pass a whole number, 1 or more")


def _digest_of(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _checked_digest(value: object, argument: str) -> None:
    if not (isinstance(value, str) and value.startswith("sha256:") and is_digest(value[7:])):
        raise GateArgumentError(argument, "pass 'sha256:' and 64 lowercase hex digits")


def _check_proof(proof: ArtifactReference) -> None:
    _checked_digest(proof.digest, "proof_artifact.digest")
    if isinstance(proof.byte_length, bool) or not 0 <= proof.byte_length < 1 << 53:
        raise GateArgumentError("proof_artifact.byte_length", "pass a whole number, 0 or more")
    if len(proof.media_type) > 255 or not _MEDIA_TYPE.fullmatch(proof.media_type):
        raise GateArgumentError("proof_artifact.media_type", "pass type/subtype")
    if proof.purpose != "proof-packet":
        raise GateArgumentError("proof_artifact.purpose", "pass 'proof-packet'")


# -- the decision --------------------------------------------------------------------------------------------

DecisionKind: TypeAlias = Literal["allow", "wait", "deny"]


@dataclass(frozen=True)
class ActionDecision:
    """What a person said: ``allow``, ``wait`` with a reason and a request, or ``deny`` with a reason (A3)."""

    kind: DecisionKind
    reason: str | None = None
    request: JSON = None

    @classmethod
    def parse(cls, value: object) -> ActionDecision:
        """Read a response.

        Raises:
            ValueError: no action decision: another kind, or missing, unknown or unusable fields. Not retryable.
        """
        if not isinstance(value, Mapping):
            raise ValueError("an action decision is an object")
        fields = {"allow": {"kind"}, "wait": {"kind", "reason", "request"}, "deny": {"kind", "reason"}}
        kind = value.get("kind")
        if not isinstance(kind, str) or kind not in fields:
            raise ValueError("an action decision's kind is allow, wait or deny")
        if value.keys() != fields[kind]:
            raise ValueError(f"the action decision {kind!r} has missing or unknown fields")
        reason = value.get("reason")
        if kind != "allow" and not _is_reason(reason):
            raise ValueError("an action decision's reason is trimmed text without control characters")
        return cls(kind, reason, value.get("request"))  # type: ignore[arg-type]

    def to_wire(self) -> dict[str, JSON]:
        """The response that says this."""
        wire: dict[str, JSON] = {"kind": self.kind}
        if self.kind != "allow":
            wire["reason"] = self.reason
        if self.kind == "wait":
            wire["request"] = self.request
        return wire


def _is_reason(value: object) -> bool:
    return isinstance(value, str) and value != "" and value == value.strip() and not _CONTROL.search(value)


# -- request, record, resolution -----------------------------------------------------------------------------


def create_approval_gate(definition: GateDefinition, subject: ApprovalSubject) -> GateRequest:
    """The request for an approval of exactly this subject: its digest is part of the input, and so of the id.

    Args:
        definition: its input is an object; its schema accepts action decisions, as `ACTION_DECISION_SCHEMA` does.
        subject: post the request with the same one.

    Raises:
        GateArgumentError: the input is no object, or names a subject already. Not retryable.

    Source: semantics A1.
    """
    if not isinstance(definition.input, Mapping):
        raise GateArgumentError("input", "an approval's input is an object; the subject's digest is added to it")
    if _SUBJECT_DIGEST in definition.input:
        raise GateArgumentError("input", f"the field {_SUBJECT_DIGEST!r} is the subject's own")
    return create_gate(replace(definition, input={**definition.input, _SUBJECT_DIGEST: subject.digest}))


def subject_digest_of(request: GateRequest) -> str | None:
    """The subject's digest that a request names, or None if it is no approval."""
    given = request.input
    named = given.get(_SUBJECT_DIGEST) if isinstance(given, Mapping) else None
    return named if isinstance(named, str) else None


def check_subject(request: GateRequest, subject: ApprovalSubject | None, plan: RunPlan | None) -> str | None:
    """The subject's canonical JSON if it may be posted with this request; None if the request is no approval.

    Raises:
        ApprovalSubjectError: missing, another one, or beyond what the plan admits. Not retryable.
        GateArgumentError: the client was made without the run's plan. Not retryable.

    Source: semantics A2.
    """
    named = subject_digest_of(request)
    if subject is None and named is None:
        return None
    if subject is None:
        raise ApprovalSubjectError(request.request_id, "its input names an approval subject; post it with that one")
    text = subject.to_json()
    if named != "sha256:" + sha256(text):
        raise ApprovalSubjectError(request.request_id, "its input does not name this approval subject")
    if plan is None:
        raise GateArgumentError("plan", NO_PLAN)
    if (outside := _outside(text, plan)) is not None:
        raise ApprovalSubjectError(request.request_id, f"the plan does not admit the permission {outside!r}")
    return text


def _outside(subject_json: str, plan: RunPlan) -> str | None:
    """The name of the first permission that the plan does not admit."""
    admitted = {canonical(permission.to_wire(), "admitted") for permission in plan.admitted}
    wanted = json.loads(subject_json)["effectivePermissions"]
    return next((each["name"] for each in wanted if canonical(each, "permission") not in admitted), None)


def approval_record(
    request: GateRequest, subject_json: str, plan: RunPlan, router_id: str, actor: object, response: object
) -> str:
    """The record of an approval, as canonical JSON: everything it is bound to, and a digest over that.

    Args:
        request: the question.
        subject_json: as posted.
        plan: of the run.
        router_id: who brought the answer.
        actor: who decided, as the caller says; an object.
        response: an action decision.

    Raises:
        ValueError: the actor is missing, the response is no action decision, or the plan admits less now.

    Source: semantics A3.
    """
    if not isinstance(actor, Mapping):
        raise ValueError("an approval needs an actor, as an object")
    if (outside := _outside(subject_json, plan)) is not None:
        raise ValueError(f"the plan does not admit the permission {outside!r}")
    subject: dict[str, JSON] = json.loads(subject_json)
    binding: dict[str, JSON] = {
        "requestId": request.request_id,
        "requestDigest": request.digest,
        "planDigest": plan.plan_digest,
        "graph": {"definitionDigest": plan.graph_digest, "typeVersion": plan.graph_type_version},
        **subject,
        "actor": actor,
        "responsePath": router_id,
        "decision": ActionDecision.parse(response).to_wire(),
    }
    try:
        digest = "sha256:" + sha256(canonical(binding, "approval"))
        return canonical(
            {"schemaVersion": _RECORD_VERSION, "binding": binding, "bindingDigest": digest}, "approval", 4 << 20
        )
    except GateValueError as error:
        raise ValueError(str(error)) from None


def resolve_approval(
    state: GateState, request: GateRequest, subject: ApprovalSubject, plan: RunPlan
) -> ActionDecision:
    """The recorded decision, if everything that it was made for is still the same; else a ``wait``.

    Applies nothing. Never raises for what is stored: what does not read as an approval of exactly this is none.

    Args:
        state: of the run.
        request: the question, made anew from what is to be applied now.
        subject: likewise.
        plan: of the run now.

    Source: semantics A5.
    """
    stale = ActionDecision(
        "wait",
        "no approval for exactly this",
        {"requestId": request.request_id, "requestDigest": request.digest},
    )
    stored = state.get(request.request_id)
    if stored is None or stored.status is not GateStatus.ANSWERED or stored.approval_json is None:
        return stale
    try:
        binding: Any = json.loads(stored.approval_json)["binding"]
        router_id, actor, decision = binding["responsePath"], binding["actor"], binding["decision"]
        wanted = approval_record(_identified(request), subject.to_json(), plan, router_id, actor, decision)
        return ActionDecision.parse(decision) if wanted == stored.approval_json else stale
    except (ValueError, KeyError, TypeError, GateError):
        return stale


def _identified(request: GateRequest) -> GateRequest:
    """The same request, its identity computed from its bytes.

    Raises:
        ValueError: its bytes do not give its id.
    """
    return GateRequest.from_wire(request.to_wire())
