"""Approvals bound to exact bytes, on every store. Rules: semantics section 10."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from corrobo_core.gates import (
    ACTION_DECISION_SCHEMA,
    ActionDecision,
    ApprovalSubject,
    ApprovalSubjectError,
    ArtifactReference,
    CallbackSubmitted,
    GateArgumentError,
    GateClient,
    GateConflictError,
    GateDefinition,
    Gates,
    Permission,
    RunPlan,
    SubmitOk,
    SubmitRefused,
    create_approval_gate,
    create_gate,
    direct_router,
    from_lines,
    replay,
    to_lines,
)
from corrobo_core.gates.jsontext import canonical, sha256
from tests.gates.conftest import Store
from tests.gates.support import MINUTE, claimed, kinds

OUTPUT = b'{"amount":5000}'
WRITE = Permission("refunds:write", {"currency": "EUR"})
SUBJECT = ApprovalSubject(
    input_artifact_hashes={"order.json": "sha256:" + "1" * 64},
    proof_scope={"checks": ["limits"]},
    proof_artifact=ArtifactReference.of(b"proof", "application/json"),
    proposed_output=OUTPUT,
    effective_permissions=[WRITE],
    workspace_anchor={"commit": "abc123"},
)
PLAN = RunPlan("sha256:" + "a" * 64, "sha256:" + "b" * 64, 1, [WRITE, Permission("mail:send")])
DEFINITION = GateDefinition("refund", 1, "Refund 50.00?", ACTION_DECISION_SCHEMA, {"order": "1001"})
REQUEST = create_approval_gate(DEFINITION, SUBJECT)
RID, DIGEST = REQUEST.request_id, REQUEST.digest
ADA, BOB = {"name": "ada"}, {"name": "bob"}
ALLOW: dict[str, Any] = {"kind": "allow"}
DENY: dict[str, Any] = {"kind": "deny", "reason": "too much"}
WAIT: dict[str, Any] = {"kind": "wait", "reason": "ask finance", "request": {"team": "finance"}}

# Every part of a subject, changed.
CHANGES: list[dict[str, Any]] = [
    {"input_artifact_hashes": {"order.json": "sha256:" + "2" * 64}},
    {"input_artifact_hashes": {}},
    {"proof_scope": {"checks": []}},
    {"proof_artifact": ArtifactReference.of(b"other proof", "application/json")},
    {"proposed_output": OUTPUT + b" "},
    {"effective_permissions": []},
    {"workspace_anchor": {"commit": "def456"}},
    {"workspace_anchor": None},
]
stale = ActionDecision("wait", "no approval for exactly this", {"requestId": RID, "requestDigest": DIGEST})


def subject(**changes: Any) -> ApprovalSubject:
    return replace(SUBJECT, **changes)


@pytest.fixture
def client(store: Store) -> Gates:
    return store.client(plan=PLAN)


def answered(client: Gates, decision: dict[str, Any] = ALLOW, actor: dict[str, str] = ADA) -> str:
    client.post(REQUEST, SUBJECT)
    token = claimed(client, request_id=RID)
    assert client.submit(RID, token, "router-a", DIGEST, decision, actor=actor).ok
    return token


# -- asking --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", CHANGES)
def test_A1_changed_bytes_are_a_different_request(change: dict[str, Any]) -> None:
    assert create_approval_gate(DEFINITION, replace(SUBJECT, **change)).request_id != RID


def test_A1_the_subject_is_digested_as_other_implementations_do() -> None:
    wire = {
        "workspaceAnchor": {"commit": "abc123"},
        "inputArtifactHashes": {"order.json": "sha256:" + "1" * 64},
        "proofScope": {"checks": ["limits"]},
        "proofArtifact": {
            "schemaVersion": 1,
            "digest": "sha256:" + sha256("proof"),
            "byteLength": 5,
            "mediaType": "application/json",
            "purpose": "proof-packet",
        },
        "proposedOutputDigest": "sha256:" + sha256(OUTPUT.decode()),
        "effectivePermissions": [{"name": "refunds:write", "scope": {"currency": "EUR"}}],
    }
    digest = "sha256:" + sha256(canonical(wire, "subject"))
    assert SUBJECT.digest == digest
    assert REQUEST.input == {"order": "1001", "approvalSubjectDigest": digest}


@pytest.mark.parametrize("subject", [None, *(replace(SUBJECT, **change) for change in CHANGES)])
def test_A2_a_missing_or_different_subject_is_refused(subject: ApprovalSubject | None) -> None:
    client = GateClient(plan=PLAN)
    with pytest.raises(ApprovalSubjectError) as refused:
        client.post(REQUEST, subject)
    assert refused.value.code == "SUBJECT_MISMATCH"
    assert client.history() == ()


def test_A2_a_subject_for_a_question_that_names_none_is_refused(client: Gates) -> None:
    with pytest.raises(ApprovalSubjectError):
        client.post(create_gate(DEFINITION), SUBJECT)


def test_A2_permissions_beyond_the_plan_are_refused(client: Gates) -> None:
    for permission in (Permission("refunds:write", {"currency": "USD"}), Permission("admin")):
        greedy = replace(SUBJECT, effective_permissions=[WRITE, permission])
        with pytest.raises(ApprovalSubjectError, match=permission.name):
            client.post(create_approval_gate(DEFINITION, greedy), greedy)
    assert client.history() == ()


def test_A2_approvals_need_the_runs_plan() -> None:
    with pytest.raises(GateArgumentError, match="plan"):
        GateClient().post(REQUEST, SUBJECT)
    with pytest.raises(GateArgumentError, match="plan"):
        GateClient().resolve_approval(REQUEST, SUBJECT)


@pytest.mark.parametrize(
    "make",
    [
        lambda: subject(proposed_output="text"),
        lambda: replace(SUBJECT, input_artifact_hashes={"a": "1" * 64}),
        lambda: subject(input_artifact_hashes=["a"]),
        lambda: replace(SUBJECT, proof_artifact=ArtifactReference("sha256:x", 1)),
        lambda: replace(SUBJECT, proof_artifact=replace(SUBJECT.proof_artifact, purpose="notes")),
        lambda: replace(SUBJECT, proof_artifact=replace(SUBJECT.proof_artifact, byte_length=-1)),
        lambda: replace(SUBJECT, proof_artifact=replace(SUBJECT.proof_artifact, media_type="json")),
        lambda: replace(SUBJECT, effective_permissions=[Permission("")]),
        lambda: subject(workspace_anchor="abc"),
        lambda: RunPlan("a", "sha256:" + "b" * 64),
        lambda: RunPlan("sha256:" + "b" * 64, "sha256:" + "b" * 64, 0),
        lambda: create_approval_gate(replace(DEFINITION, input="text"), SUBJECT),
        lambda: create_approval_gate(replace(DEFINITION, input={"approvalSubjectDigest": "x"}), SUBJECT),
    ],
)
def test_L8_a_malformed_subject_or_plan_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(GateArgumentError):
        make()


# -- answering -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "actor"),
    [
        (ALLOW, None),
        (ALLOW, "ada"),
        ({"kind": "yes"}, ADA),
        ({"kind": "allow", "reason": "x"}, ADA),
        ({"kind": "deny"}, ADA),
        ({"kind": "deny", "reason": ""}, ADA),
        ({"kind": "deny", "reason": " x"}, ADA),
        ({"kind": "deny", "reason": "a\nb"}, ADA),
        ({"kind": "wait", "reason": "x"}, ADA),
        ({"kind": ["allow"]}, ADA),
        (["allow"], ADA),
        (ALLOW, {"n": 2**53}),
    ],
)
def test_A3_without_actor_or_action_decision_it_is_invalid(response: Any, actor: Any) -> None:
    client = GateClient(plan=PLAN)
    client.post(REQUEST, SUBJECT)
    token = claimed(client, request_id=RID)
    refused = client.submit(RID, token, "router-a", DIGEST, response, actor=actor)
    assert isinstance(refused, SubmitRefused) and refused.kind == "invalid"
    assert kinds(client) == ["requested", "claimed"]


@pytest.mark.parametrize("decision", [ALLOW, DENY, WAIT])
def test_A3_submission_and_record_are_one(store: Store, client: Gates, decision: dict[str, Any]) -> None:
    answered(client, decision)
    shown = store.client(plan=PLAN).show(RID)
    assert shown is not None and shown.answer is not None
    assert shown.answer.response == decision
    record: Any = shown.approval
    assert record["schemaVersion"] == 1
    assert record["bindingDigest"] == "sha256:" + sha256(canonical(record["binding"], "binding"))
    bound = record["binding"]
    assert (bound["requestId"], bound["requestDigest"]) == (RID, DIGEST)
    assert (bound["actor"], bound["decision"], bound["responsePath"]) == (ADA, decision, "router-a")
    assert (bound["planDigest"], bound["graph"]["definitionDigest"]) == (PLAN.plan_digest, PLAN.graph_digest)
    assert bound["proposedOutputDigest"] == "sha256:" + sha256(OUTPUT.decode())


def test_A3_the_plan_must_still_admit_it_when_it_is_answered(store: Store, client: Gates) -> None:
    client.post(REQUEST, SUBJECT)
    token = claimed(client, request_id=RID)
    later = store.client(plan=replace(PLAN, admitted=[]))
    refused = later.submit(RID, token, "router-a", DIGEST, ALLOW, actor=ADA)
    assert isinstance(refused, SubmitRefused) and refused.kind == "invalid"


def test_A4_the_same_submission_again_succeeds_and_adds_nothing(store: Store, client: Gates) -> None:
    token = answered(client)
    for again in (client, store.client(plan=PLAN)):
        submitted = again.submit(RID, token, "router-a", DIGEST, ALLOW, actor=ADA)
        assert isinstance(submitted, SubmitOk) and submitted.answer.response == ALLOW
    assert kinds(client) == ["requested", "claimed", "submitted"]


def test_A4_another_decision_or_actor_of_the_owner_is_a_conflict(client: Gates) -> None:
    token = answered(client)
    for decision, actor in ((DENY, ADA), (ALLOW, BOB)):
        with pytest.raises(GateConflictError) as conflict:
            client.submit(RID, token, "router-a", DIGEST, decision, actor=actor)
        assert conflict.value.code == "REVISION_CONFLICT"
    assert kinds(client) == ["requested", "claimed", "submitted"]


def test_A4_refusals_after_the_answer(client: Gates) -> None:
    token = answered(client)

    def kind(token: str, router: str, digest: str, actor: Any = ADA, decision: Any = ALLOW) -> str:
        refused = client.submit(RID, token, router, digest, decision, actor=actor)
        assert isinstance(refused, SubmitRefused)
        return refused.kind

    assert kind(token, "router-b", DIGEST) == "not-owner"
    assert kind("foreign", "router-a", DIGEST) == "not-owner"
    assert kind(token, "router-a", "0" * 64) == "stale"
    assert kind(token, "router-a", DIGEST, actor=None) == "invalid"
    assert kind(token, "router-a", DIGEST, decision={"kind": "maybe"}) == "invalid"


def test_A3_a_direct_router_brings_the_actor(client: Gates) -> None:
    client.post(REQUEST, SUBJECT)
    if isinstance(client, Gates):
        assert direct_router(client, REQUEST, "router-a", lambda asked: ALLOW, actor=ADA).ok


# -- using it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", [ALLOW, DENY, WAIT])
def test_A5_the_stored_decision_is_returned_while_everything_matches(
    client: Gates, decision: dict[str, Any]
) -> None:
    assert client.resolve_approval(REQUEST, SUBJECT) == stale
    client.post(REQUEST, SUBJECT)
    assert client.resolve_approval(REQUEST, SUBJECT) == stale
    token = claimed(client, request_id=RID)
    client.submit(RID, token, "router-a", DIGEST, decision, actor=ADA)
    assert client.resolve_approval(REQUEST, SUBJECT).to_wire() == decision


@pytest.mark.parametrize("change", CHANGES)
def test_A5_a_changed_part_of_the_subject_is_a_wait(change: dict[str, Any]) -> None:
    client = GateClient(plan=PLAN)
    answered(client)
    assert client.resolve_approval(REQUEST, replace(SUBJECT, **change)) == stale


@pytest.mark.parametrize(
    "plan",
    [
        replace(PLAN, plan_digest="sha256:" + "c" * 64),
        replace(PLAN, graph_digest="sha256:" + "c" * 64),
        replace(PLAN, graph_type_version=2),
        replace(PLAN, admitted=[]),
    ],
)
def test_A5_another_plan_or_graph_is_a_wait(store: Store, client: Gates, plan: RunPlan) -> None:
    answered(client)
    assert store.client(plan=plan).resolve_approval(REQUEST, SUBJECT) == stale
    assert store.client(plan=PLAN).resolve_approval(REQUEST, SUBJECT).kind == "allow"


def test_A5_another_question_or_one_that_lies_about_its_id_is_a_wait() -> None:
    client = GateClient(plan=PLAN)
    answered(client)
    other = create_approval_gate(replace(DEFINITION, decision_text="Refund 5000.00?"), SUBJECT)
    assert client.resolve_approval(other, SUBJECT).kind == "wait"
    assert client.resolve_approval(replace(REQUEST, decision_text="Refund 5000.00?"), SUBJECT).kind == "wait"


def test_A5_an_expired_or_superseded_approval_is_a_wait(store: Store, client: Gates) -> None:
    client.post(REQUEST, SUBJECT, deadline=MINUTE)
    token = claimed(client, request_id=RID)
    store.clock.turn(2 * MINUTE)
    late = client.submit(RID, token, "router-a", DIGEST, ALLOW, actor=ADA)
    assert isinstance(late, SubmitRefused) and (late.kind, late.late) == ("expired", True)
    assert client.resolve_approval(REQUEST, SUBJECT) == stale


def test_A5_a_history_on_the_wire_carries_no_approval() -> None:
    """Only the store's own rows do: what was exported without the record is no approval."""
    client = GateClient(plan=PLAN)
    answered(client)
    bare = replay(from_lines(to_lines(client.history())), plan=PLAN)
    assert bare.resolve_approval(REQUEST, SUBJECT) == stale
    assert replay(client.history(), plan=PLAN).resolve_approval(REQUEST, SUBJECT).kind == "allow"


@pytest.mark.parametrize(
    "tamper",
    [
        lambda record: {**record, "schemaVersion": 2},
        lambda record: {**record, "bindingDigest": "sha256:" + "0" * 64},
        lambda record: {**record, "binding": {**record["binding"], "decision": ALLOW, "actor": BOB}},
        lambda record: {**record, "more": 1},
        lambda record: {"binding": None},
        lambda record: [],
    ],
)
def test_F11_a_record_of_an_unknown_version_or_another_digest_is_a_wait(tamper: Callable[[Any], Any]) -> None:
    client = GateClient(plan=PLAN)
    answered(client, DENY)
    *before, submitted = client.history()
    assert isinstance(submitted, CallbackSubmitted) and submitted.approval_json is not None
    record = json.loads(submitted.approval_json)
    changed = replace(submitted, approval_json=canonical(tamper(record), "record"))
    assert replay([*before, changed], plan=PLAN).resolve_approval(REQUEST, SUBJECT) == stale
