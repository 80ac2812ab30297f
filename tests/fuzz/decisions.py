"""What people decided, as it is stored, sent and answered: read, or refused as documented (R3, A3, G6)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from corrobo_core.errors import LedgerCorruptError
from corrobo_core.gates import (
    ClaimOk,
    GateClient,
    GateDefinitionError,
    GateRequest,
    GateValueError,
    SubmitOk,
    SubmitRefused,
    create_gate,
)
from corrobo_core.gates.approvals import ActionDecision
from corrobo_core.ledgers import _decisions
from corrobo_core.ledgers.document import from_row, to_document
from corrobo_core.records import Decision, DecisionKind, Operation
from corrobo_core.testing._operations import filled, reserving, unsent
from tests.fuzz.fuzzing import Target
from tests.fuzz.hostile import Edit, any_json, any_text, any_value, edited, edits, few_json, near_json, refused_or
from tests.gates.support import DEFINITION, REQUEST

__all__ = ["DECISIONS"]

WHEN = datetime(2026, 11, 30, 12, tzinfo=UTC)
DECISION = Decision(
    "token", DecisionKind.APPROVED, "ann", WHEN, WHEN + timedelta(1), "v1:sha256:0", "a note", {"id": 1}, 1
)
DOCUMENT = json.loads(to_document(filled(reserving(unsent("op")))))


def read_operation(text: str) -> Operation | None:
    def read() -> Operation:
        return from_row(
            ledger="fuzzed",
            namespace="default",
            operation_id="op",
            operation_type="test/effect",
            intent="{}",
            fingerprint="v1:sha256:0",
            version=1,
            owner=None,
            nonce="n",
            started=WHEN,
            document=text,
        )

    found = refused_or(LedgerCorruptError, read)
    assert found is None or isinstance(found, Operation)
    return found


def a_damaged_record_is_refused_or_stays_as_it_reads(case: tuple[Sequence[Edit], int, str]) -> None:
    changes, at, scrap = case
    text = json.dumps(edited(DOCUMENT, changes))
    place = at % (len(text) + 1)
    operation = read_operation(text[:place] + scrap + text[place:])
    if operation is not None:
        written = to_document(operation)
        again = read_operation(written)
        assert again is not None and to_document(again) == written
        for time in (operation.retry_at, *(attempt.ended for attempt in operation.attempts)):
            assert time is None or time.tzinfo is not None


def a_damaged_decision_is_refused_or_stays_as_it_reads(case: tuple[Sequence[Edit], str]) -> None:
    changes, scrap = case
    text = json.dumps(edited([json.loads(_decisions.to_document(DECISION))] * 2, changes)) + scrap
    found = refused_or(LedgerCorruptError, lambda: _decisions.read_decisions("fuzzed", "op", text))
    for decision in found or ():
        assert decision.decided_at.tzinfo is not None
        written = f"[{_decisions.to_document(decision)}]"
        (again,) = _decisions.read_decisions("fuzzed", "op", written)
        assert f"[{_decisions.to_document(again)}]" == written


def an_answer_counts_only_if_it_is_of_the_asked_form(answer: Any) -> None:
    client = GateClient(clock=lambda: WHEN)
    client.post(REQUEST)
    claimed = client.claim(REQUEST.request_id, "router-a")
    assert isinstance(claimed, ClaimOk)
    said = client.submit(REQUEST.request_id, claimed.claim_token, "router-a", REQUEST.digest, answer)
    right = isinstance(answer, dict) and type(answer.get("approved")) is bool
    recorded = [event.kind for event in client.history()].count("callback-submitted")
    assert recorded == isinstance(said, SubmitOk)
    assert right or not isinstance(said, SubmitOk)


def an_action_decision_is_refused_or_says_the_same_again(value: Any) -> None:
    decision = refused_or(ValueError, lambda: ActionDecision.parse(value))
    if decision is not None:
        assert ActionDecision.parse(decision.to_wire()) == decision


def a_questions_schema_is_refused_or_can_be_answered(case: tuple[Any, Any]) -> None:
    schema, answer = case
    definition = refused_or(
        (GateDefinitionError, GateValueError), lambda: create_gate(replace(DEFINITION, response_schema=schema))
    )
    if definition is not None:
        client = GateClient(clock=lambda: WHEN)
        client.post(definition)
        claimed = client.claim(definition.request_id, "router-a")
        assert isinstance(claimed, ClaimOk)
        said = client.submit(definition.request_id, claimed.claim_token, "router-a", definition.digest, answer)
        assert isinstance(said, SubmitOk | SubmitRefused)


def a_damaged_question_is_refused_or_the_same(changes: Sequence[Edit]) -> None:
    wire = edited(REQUEST.to_wire(), changes)
    request = refused_or(ValueError, lambda: GateRequest.from_wire(wire))
    if request is not None:
        assert (request.request_id, request.digest) == (wire["requestId"], wire["digest"])
        assert GateRequest.from_wire(request.to_wire()) == request


def _schemas() -> st.SearchStrategy[Any]:
    words = [
        "type",
        "properties",
        "items",
        "required",
        "enum",
        "const",
        "pattern",
        "format",
        "minimum",
        "$ref",
        "$id",
    ]
    words += [
        "allOf",
        "not",
        "if",
        "prefixItems",
        "additionalProperties",
        "multipleOf",
        "$defs",
        "uniqueItems",
        "a",
    ]
    leaves = st.sampled_from(
        [
            "string",
            "object",
            "number",
            "date-time",
            "^a+$",
            "(",
            "#",
            "#/$defs/a",
            "http://x",
            True,
            0,
            -1,
            0.1,
            None,
        ]
    )
    return st.recursive(
        leaves | few_json,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(words), inner, max_size=4),
        max_leaves=10,
    )


_answers = st.fixed_dictionaries({"approved": st.booleans() | near_json}, optional={"note": any_json})
_actions = st.fixed_dictionaries(
    {"kind": st.sampled_from(["allow", "wait", "deny"]) | few_json},
    optional={"reason": any_text, "request": any_json},
)

DECISIONS = Target(
    "decisions",
    {
        a_damaged_record_is_refused_or_stays_as_it_reads: st.tuples(
            edits, st.integers(0, 5_000), st.just("") | st.sampled_from(["[" * 9_000, "0", ",", '"', "1e999"])
        ),
        a_damaged_decision_is_refused_or_stays_as_it_reads: st.tuples(
            edits, st.just("") | st.sampled_from(["[" * 9_000, "]", "x"])
        ),
        an_answer_counts_only_if_it_is_of_the_asked_form: _answers | any_value | any_json,
        an_action_decision_is_refused_or_says_the_same_again: _actions | any_value,
        a_questions_schema_is_refused_or_can_be_answered: st.tuples(_schemas(), near_json),
        a_damaged_question_is_refused_or_the_same: edits,
    },
)
